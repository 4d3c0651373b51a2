// SPDX-License-Identifier: Apache-2.0

// Patches: of JSON, of merging, of merging as the kind's lists are merged, and by computing them as kubectl apply does.
package main

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

func checkPatches(ns string) {
	maps := typed.CoreV1().ConfigMaps(ns)
	deployments := typed.AppsV1().Deployments(ns)
	patch := func(ctx context.Context, kind types.PatchType, text string, subresources ...string) (*appsv1.Deployment, error) {
		return deployments.Patch(ctx, "patched", kind, []byte(text), metav1.PatchOptions{}, subresources...)
	}
	check("a Deployment of two containers to patch", func(ctx context.Context) error {
		object := deployment("patched", 0)
		second := object.Spec.Template.Spec.Containers[0].DeepCopy()
		second.Name = "side"
		second.Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}}
		second.Ports = []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 81}}
		object.Spec.Template.Spec.Containers = append(object.Spec.Template.Spec.Containers, *second)
		_, err := deployments.Create(ctx, object, options())
		return err
	})
	check("a JSON patch: test, add, replace, move, copy, remove", func(ctx context.Context) error {
		if _, err := maps.Create(ctx, configMap("json", "a", "1", "b", "2"), options()); err != nil {
			return err
		}
		got, err := maps.Patch(ctx, "json", types.JSONPatchType, []byte(`[{"op":"test","path":"/data/a","value":"1"},{"op":"add","path":"/data/c","value":"3"},
			{"op":"replace","path":"/data/a","value":"one"},{"op":"move","from":"/data/b","path":"/data/d"},{"op":"copy","from":"/data/c","path":"/data/e"},{"op":"remove","path":"/data/c"}]`), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		return same("data", got.Data, map[string]string{"a": "one", "d": "2", "e": "3"})
	})
	check("a JSON patch whose test fails is invalid and changes nothing; one that is no patch is a bad request", func(ctx context.Context) error {
		_, err := maps.Patch(ctx, "json", types.JSONPatchType, []byte(`[{"op":"remove","path":"/data/a"},{"op":"test","path":"/data/d","value":"x"}]`), metav1.PatchOptions{})
		_, missing := maps.Patch(ctx, "json", types.JSONPatchType, []byte(`[{"op":"remove","path":"/data/zzz"}]`), metav1.PatchOptions{})
		_, bad := maps.Patch(ctx, "json", types.JSONPatchType, []byte(`{"op":"remove"}`), metav1.PatchOptions{})
		now, other := maps.Get(ctx, "json", metav1.GetOptions{})
		if other != nil {
			return other
		}
		return all(same("IsInvalid", apierrors.IsInvalid(err), true), same("IsInvalid of what is missing", apierrors.IsInvalid(missing), true),
			same("IsBadRequest", apierrors.IsBadRequest(bad), true), same("a", now.Data["a"], "one"))
	})
	check("a merge patch: sets, and removes with null; lists are replaced whole", func(ctx context.Context) error {
		got, err := patch(ctx, types.MergePatchType, `{"metadata":{"annotations":{"a":"b"},"labels":{"app":null}},"spec":{"minReadySeconds":7}}`)
		if err != nil {
			return err
		}
		_, err = patch(ctx, types.MergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"main"}]}}}}`)
		return all(same("annotation", got.Annotations["a"], "b"), same("labels", len(got.Labels), 0), same("minReadySeconds", got.Spec.MinReadySeconds, int32(7)),
			causes(err, "spec.template.spec.containers[0].image: FieldValueRequired"))
	})
	check("a strategic patch merges containers and their variables by name, ports by number", func(ctx context.Context) error {
		got, err := patch(ctx, types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[
			{"name":"side","image":"example.invalid/other:2","env":[{"name":"B","value":"two"},{"name":"C","value":"3"},{"name":"A","$patch":"delete"}],"ports":[{"containerPort":81,"name":"web"}]}]}}}}`)
		if err != nil {
			return err
		}
		containers := got.Spec.Template.Spec.Containers
		if len(containers) != 2 {
			return fmt.Errorf("%d containers", len(containers))
		}
		side := containers[0]
		if side.Name != "side" {
			side = containers[1]
		}
		variables := map[string]string{}
		for _, one := range side.Env {
			variables[one.Name] = one.Value
		}
		named := ""
		for _, port := range side.Ports {
			if port.ContainerPort == 81 {
				named = port.Name
			}
		}
		return all(same("image", side.Image, "example.invalid/other:2"), same("env", variables, map[string]string{"B": "two", "C": "3"}), same("ports", len(side.Ports), 2), same("port 81", named, "web"))
	})
	check("a strategic patch deletes a container, replaces a list, keeps only named keys, and orders", func(ctx context.Context) error {
		got, err := patch(ctx, types.StrategicMergePatchType, `{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"},"template":{"spec":{"containers":[{"name":"side","$patch":"delete"}]}}}}`)
		if err != nil {
			return err
		}
		replaced, err := patch(ctx, types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"tolerations":[{"key":"a","operator":"Exists"}],"containers":[{"name":"fresh","image":"example.invalid/f:1"},{"$patch":"replace"}]}}}}`)
		if err != nil {
			return err
		}
		added, err := patch(ctx, types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"first"},{"name":"fresh"}],"containers":[{"name":"first","image":"example.invalid/f:2"}]}}}}`)
		if err != nil {
			return err
		}
		return all(same("containers", len(got.Spec.Template.Spec.Containers), 1), same("strategy", got.Spec.Strategy, appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}),
			same("replaced", len(replaced.Spec.Template.Spec.Containers), 1), same("it is", replaced.Spec.Template.Spec.Containers[0].Name, "fresh"),
			same("order", added.Spec.Template.Spec.Containers[0].Name+" "+added.Spec.Template.Spec.Containers[1].Name, "first fresh"))
	})
	check("a strategic patch takes one finalizer from the list", func(ctx context.Context) error {
		object := configMap("finalized")
		object.Finalizers = []string{"example.com/a", "example.com/b"}
		if _, err := maps.Create(ctx, object, options()); err != nil {
			return err
		}
		got, err := maps.Patch(ctx, "finalized", types.StrategicMergePatchType, []byte(`{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/a"]}}`), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		return same("finalizers", got.Finalizers, []string{"example.com/b"})
	})
	check("a patch of status leaves the spec, a patch of the object leaves the status", func(ctx context.Context) error {
		both := `{"spec":{"paused":true},"status":{"conditions":[{"type":"Checked","status":"True","reason":"R","message":"m"}]}}`
		status, err := patch(ctx, types.StrategicMergePatchType, both, "status")
		if err != nil {
			return err
		}
		found := func(d *appsv1.Deployment) bool {
			for _, condition := range d.Status.Conditions {
				if condition.Type == "Checked" {
					return true
				}
			}
			return false
		}
		spec, err := patch(ctx, types.MergePatchType, `{"spec":{"paused":true},"status":{"conditions":null,"replicas":9}}`)
		if err != nil {
			return err
		}
		return all(same("paused by status", status.Spec.Paused, false), same("condition", found(status), true), same("paused", spec.Spec.Paused, true), same("replicas", spec.Status.Replicas, int32(0)))
	})
	check("a patch that names a resourceVersion of the past conflicts; one that names none never does", func(ctx context.Context) error {
		old, err := maps.Get(ctx, "json", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if _, err := maps.Patch(ctx, "json", types.MergePatchType, []byte(`{"data":{"x":"y"}}`), metav1.PatchOptions{}); err != nil {
			return err
		}
		_, err = maps.Patch(ctx, "json", types.MergePatchType, []byte(`{"metadata":{"resourceVersion":"`+old.ResourceVersion+`"},"data":{"x":"z"}}`), metav1.PatchOptions{})
		return refused(err, apierrors.IsConflict, `Operation cannot be fulfilled on configmaps "json": the object has been modified; please apply your changes to the latest version and try again`)
	})
	check("a patch of what is not there is not found; one that renames is refused", func(ctx context.Context) error {
		_, err := maps.Patch(ctx, "nope", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
		_, renamed := maps.Patch(ctx, "json", types.MergePatchType, []byte(`{"metadata":{"name":"other"}}`), metav1.PatchOptions{})
		return all(refused(err, apierrors.IsNotFound, `configmaps "nope" not found`),
			refused(renamed, apierrors.IsBadRequest, "the name of the object (other) does not match the name on the URL (json)"))
	})
	check("kubectl apply's own way: a patch of three sides", func(ctx context.Context) error {
		encode := func(d *appsv1.Deployment) []byte {
			d.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
			text, _ := json.Marshal(d)
			return text
		}
		before := deployment("three", 0)
		before.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MINE", Value: "1"}, {Name: "GONE", Value: "1"}}
		if _, err := deployments.Create(ctx, before.DeepCopy(), options()); err != nil {
			return err
		}
		if _, err := deployments.Patch(ctx, "three", types.StrategicMergePatchType, []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"THEIRS","value":"1"}]}]}}}}`), metav1.PatchOptions{}); err != nil {
			return err
		}
		after := before.DeepCopy()
		after.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MINE", Value: "2"}}
		live, err := deployments.Get(ctx, "three", metav1.GetOptions{})
		if err != nil {
			return err
		}
		lookup, err := strategicpatch.NewPatchMetaFromStruct(&appsv1.Deployment{})
		if err != nil {
			return err
		}
		text, err := strategicpatch.CreateThreeWayMergePatch(encode(before), encode(after), encode(live), lookup, true)
		if err != nil {
			return err
		}
		got, err := deployments.Patch(ctx, "three", types.StrategicMergePatchType, text, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		variables := map[string]string{}
		for _, one := range got.Spec.Template.Spec.Containers[0].Env {
			variables[one.Name] = one.Value
		}
		return same("env", variables, map[string]string{"MINE": "2", "THEIRS": "1"})
	})
}
