// SPDX-License-Identifier: Apache-2.0

// Server-side apply: typed apply configurations, several managers, conflicts, force, subresources, and the way from client-side apply.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/util/csaupgrade"
)

func applied(name, ns string, replicas int32, containers ...*coreapply.ContainerApplyConfiguration) *appsapply.DeploymentApplyConfiguration {
	labels := map[string]string{"app": name}
	return appsapply.Deployment(name, ns).WithLabels(labels).WithSpec(appsapply.DeploymentSpec().WithReplicas(replicas).
		WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(coreapply.PodTemplateSpec().WithLabels(labels).WithSpec(coreapply.PodSpec().WithContainers(containers...))))
}

func managers(entries []metav1.ManagedFieldsEntry) string {
	var found []string
	for _, entry := range entries {
		one := entry.Manager + ":" + string(entry.Operation)
		if entry.Subresource != "" {
			one += ":" + entry.Subresource
		}
		found = append(found, one)
	}
	sort.Strings(found)
	return strings.Join(found, " ")
}

// owned gives the fields of a manager, as JSON.
func owned(entries []metav1.ManagedFieldsEntry, manager string) string {
	for _, entry := range entries {
		if entry.Manager == manager && entry.FieldsV1 != nil {
			return string(entry.FieldsV1.Raw)
		}
	}
	return ""
}

func checkApply(ns string) {
	deployments := typed.AppsV1().Deployments(ns)
	maps := typed.CoreV1().ConfigMaps(ns)
	one := func() *coreapply.ContainerApplyConfiguration {
		return coreapply.Container().WithName("main").WithImage("example.invalid/a:1")
	}
	two := func() *coreapply.ContainerApplyConfiguration {
		return coreapply.Container().WithName("side").WithImage("example.invalid/b:1")
	}
	by := func(manager string) metav1.ApplyOptions { return metav1.ApplyOptions{FieldManager: manager} }

	check("a typed apply configuration creates, and the manager owns exactly what it said", func(ctx context.Context) error {
		got, err := deployments.Apply(ctx, applied("web", ns, 0, one(), two()), by("alpha"))
		if err != nil {
			return err
		}
		want := `{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:name":{}},"k:{\"name\":\"side\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`
		var wanted, owns any
		_ = json.Unmarshal([]byte(want), &wanted)
		_ = json.Unmarshal([]byte(owned(got.ManagedFields, "alpha")), &owns)
		return all(same("managers", managers(got.ManagedFields), "alpha:Apply"), same("fields", owns, wanted), same("generation", got.Generation, int64(1)))
	})
	check("what a manager no longer says is removed; what others say stays", func(ctx context.Context) error {
		if _, err := deployments.Patch(ctx, "web", types.MergePatchType, []byte(`{"metadata":{"annotations":{"by":"hand"}}}`), metav1.PatchOptions{FieldManager: "editor"}); err != nil {
			return err
		}
		got, err := deployments.Apply(ctx, applied("web", ns, 0, one()), by("alpha"))
		if err != nil {
			return err
		}
		return all(same("containers", len(got.Spec.Template.Spec.Containers), 1), same("annotation", got.Annotations["by"], "hand"), matches("editor's", owned(got.ManagedFields, "editor"), `^\{"f:metadata":\{"f:annotations":\{("\.":\{\},)?"f:by":\{\}\}\}\}$`))
	})
	check("another manager's other value conflicts, field by field, with the manager's name", func(ctx context.Context) error {
		_, err := deployments.Apply(ctx, applied("web", ns, 3, one().WithImage("example.invalid/a:2")), by("beta"))
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("want a conflict, got %v", err)
		}
		status := err.(apierrors.APIStatus).Status()
		var fields []string
		for _, cause := range status.Details.Causes {
			if cause.Type != metav1.CauseTypeFieldManagerConflict || cause.Message != `conflict with "alpha"` {
				return fmt.Errorf("cause %+v", cause)
			}
			fields = append(fields, cause.Field)
		}
		sort.Strings(fields)
		return all(same("fields", fields, []string{".spec.replicas", `.spec.template.spec.containers[name="main"].image`}),
			same("message", status.Message, "Apply failed with 2 conflicts: conflicts with \"alpha\":\n- .spec.replicas\n- .spec.template.spec.containers[name=\"main\"].image"))
	})
	check("the same value is shared, force takes another's, and who lost it no longer owns it", func(ctx context.Context) error {
		shared, err := deployments.Apply(ctx, appsapply.Deployment("web", ns).WithSpec(appsapply.DeploymentSpec().WithReplicas(0)), by("gamma"))
		if err != nil {
			return err
		}
		forced := by("beta")
		forced.Force = true
		got, err := deployments.Apply(ctx, appsapply.Deployment("web", ns).WithSpec(appsapply.DeploymentSpec().WithReplicas(0).WithMinReadySeconds(1).
			WithTemplate(coreapply.PodTemplateSpec().WithSpec(coreapply.PodSpec().WithContainers(one().WithImage("example.invalid/a:3"))))), forced)
		if err != nil {
			return err
		}
		return all(same("gamma's", owned(shared.ManagedFields, "gamma"), `{"f:spec":{"f:replicas":{}}}`), same("image", got.Spec.Template.Spec.Containers[0].Image, "example.invalid/a:3"),
			same("alpha's image", strings.Contains(owned(got.ManagedFields, "alpha"), "f:image"), false), same("beta's image", strings.Contains(owned(got.ManagedFields, "beta"), "f:image"), true))
	})
	check("extract, change, apply: what a controller of apply configurations does", func(ctx context.Context) error {
		now, err := deployments.Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		mine, err := appsapply.ExtractDeployment(now, "gamma")
		if err != nil {
			return err
		}
		if mine.Spec == nil || mine.Spec.Replicas == nil || mine.Spec.Template != nil {
			return fmt.Errorf("extracted %+v", mine)
		}
		mine.Spec.WithReplicas(0).WithProgressDeadlineSeconds(77)
		got, err := deployments.Apply(ctx, mine, by("gamma"))
		if err != nil {
			return err
		}
		return same("progressDeadlineSeconds", *got.Spec.ProgressDeadlineSeconds, int32(77))
	})
	check("an applied status: a manager of its own subresource, the spec untouched", func(ctx context.Context) error {
		condition := appsapply.DeploymentCondition().WithType("Checked").WithStatus(corev1.ConditionTrue).WithReason("R").WithMessage("m")
		got, err := deployments.ApplyStatus(ctx, appsapply.Deployment("web", ns).WithSpec(appsapply.DeploymentSpec().WithReplicas(9)).
			WithStatus(appsapply.DeploymentStatus().WithConditions(condition)), by("judge"))
		if err != nil {
			return err
		}
		return all(same("replicas", *got.Spec.Replicas, int32(0)), matches("managers", managers(got.ManagedFields), `judge:Apply:status`),
			same("judge's", owned(got.ManagedFields, "judge"), `{"f:status":{"f:conditions":{"k:{\"type\":\"Checked\"}":{".":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}}}}}`))
	})
	check("a dry run of apply shows the result and keeps nothing", func(ctx context.Context) error {
		dry := by("alpha")
		dry.DryRun = []string{metav1.DryRunAll}
		got, err := maps.Apply(ctx, coreapply.ConfigMap("dry-applied", ns).WithData(map[string]string{"a": "b"}), dry)
		if err != nil {
			return err
		}
		_, absent := maps.Get(ctx, "dry-applied", metav1.GetOptions{})
		return all(same("data", got.Data["a"], "b"), same("absent", apierrors.IsNotFound(absent), true))
	})
	check("apply needs a manager, and its list keys", func(ctx context.Context) error {
		body := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"anonymous"}}`)
		_, err := maps.Patch(ctx, "anonymous", types.ApplyPatchType, body, metav1.PatchOptions{})
		_, force := maps.Patch(ctx, "json", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{Force: pointer(true)})
		return all(causes(err, "fieldManager: FieldValueRequired"), causes(force, "force: FieldValueForbidden"),
			refused(err, apierrors.IsInvalid, `PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch`))
	})
	check("managedFields in an applied object are refused", func(ctx context.Context) error {
		body := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"managed","managedFields":[{"manager":"x","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{}}]}}`)
		_, err := maps.Patch(ctx, "managed", types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "alpha"})
		return refused(err, apierrors.IsBadRequest, "metadata.managedFields must be nil")
	})
	check("a set of finalizers has several owners, each of its own member", func(ctx context.Context) error {
		for manager, finalizer := range map[string]string{"alpha": "example.com/a", "beta": "example.com/b"} {
			if _, err := maps.Apply(ctx, coreapply.ConfigMap("set", ns).WithFinalizers(finalizer), by(manager)); err != nil {
				return err
			}
		}
		both, err := maps.Get(ctx, "set", metav1.GetOptions{})
		if err != nil {
			return err
		}
		left, err := maps.Apply(ctx, coreapply.ConfigMap("set", ns), by("alpha"))
		if err != nil {
			return err
		}
		sort.Strings(both.Finalizers)
		if err := all(same("both", both.Finalizers, []string{"example.com/a", "example.com/b"}), same("left", left.Finalizers, []string{"example.com/b"})); err != nil {
			return err
		}
		_, err = maps.Patch(ctx, "set", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		return err
	})
	check("from client-side apply: its fields move to the server-side manager, and what is dropped is removed", func(ctx context.Context) error {
		made := configMap("migrated", "keep", "1", "drop", "1")
		made.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"migrated","namespace":"` + ns + `"},"data":{"keep":"1","drop":"1"}}`}
		object, err := maps.Create(ctx, made, metav1.CreateOptions{FieldManager: "kubectl-client-side-apply"})
		if err != nil {
			return err
		}
		patch, err := csaupgrade.UpgradeManagedFieldsPatch(object, sets.New("kubectl-client-side-apply"), "kubectl")
		if err != nil {
			return err
		}
		if _, err := maps.Patch(ctx, "migrated", types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("%s: %w", patch, err)
		}
		got, err := maps.Apply(ctx, coreapply.ConfigMap("migrated", ns).WithData(map[string]string{"keep": "1"}), by("kubectl"))
		if err != nil {
			return err
		}
		return all(same("data", got.Data, map[string]string{"keep": "1"}), same("managers", managers(got.ManagedFields), "kubectl:Apply"))
	})
	check("the dynamic client applies YAML's types as they are: numbers, booleans, nothing", func(ctx context.Context) error {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "applied"},
			"spec": map[string]any{"clusterIP": "None", "publishNotReadyAddresses": true, "ports": []any{map[string]any{"port": int64(80), "protocol": "TCP", "name": "tcp"}, map[string]any{"port": int64(80), "protocol": "UDP", "name": "udp"}}}}}
		services := untyped.Resource(schema.GroupVersionResource{Version: "v1", Resource: "services"}).Namespace(ns)
		got, err := services.Apply(ctx, "applied", object, by("alpha"))
		if err != nil {
			return err
		}
		ports, _, _ := unstructured.NestedSlice(got.Object, "spec", "ports")
		ready, _, _ := unstructured.NestedBool(got.Object, "spec", "publishNotReadyAddresses")
		return all(same("ports", len(ports), 2), same("publishNotReadyAddresses", ready, true),
			matches("keys", owned(got.GetManagedFields(), "alpha"), `k:\{\\"port\\":80,\\"protocol\\":\\"TCP\\"\}.*k:\{\\"port\\":80,\\"protocol\\":\\"UDP\\"\}`))
	})
}
