// SPDX-License-Identifier: Apache-2.0

// What goes wrong, as Kubernetes says it: the classes that programs ask for, the words that people read, the causes of an Invalid.
package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

type warnings struct{ texts []string }

func (w *warnings) HandleWarningHeader(code int, agent, text string) {
	w.texts = append(w.texts, fmt.Sprintf("%d %s", code, text))
}

func checkErrors(ns string) {
	maps := typed.CoreV1().ConfigMaps(ns)
	deployments := typed.AppsV1().Deployments(ns)
	untypedMaps := untyped.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(ns)
	check("IsNotFound, with the resource and its group", func(ctx context.Context) error {
		_, err := maps.Get(ctx, "nope", metav1.GetOptions{})
		_, other := deployments.Get(ctx, "nope", metav1.GetOptions{})
		details := other.(apierrors.APIStatus).Status().Details
		return all(refused(err, apierrors.IsNotFound, `configmaps "nope" not found`), refused(other, apierrors.IsNotFound, `deployments.apps "nope" not found`),
			same("details", *details, metav1.StatusDetails{Name: "nope", Group: "apps", Kind: "deployments"}),
			refused(maps.Delete(ctx, "nope", metav1.DeleteOptions{}), apierrors.IsNotFound, `configmaps "nope" not found`))
	})
	check("IsAlreadyExists", func(ctx context.Context) error {
		if _, err := maps.Create(ctx, configMap("twice"), options()); err != nil {
			return err
		}
		_, err := maps.Create(ctx, configMap("twice"), options())
		return refused(err, apierrors.IsAlreadyExists, `configmaps "twice" already exists`)
	})
	check("IsConflict", func(ctx context.Context) error {
		old, err := maps.Create(ctx, configMap("contested", "a", "1"), options())
		if err != nil {
			return err
		}
		newer := old.DeepCopy()
		newer.Data["a"] = "2"
		if _, err := maps.Update(ctx, newer, metav1.UpdateOptions{}); err != nil {
			return err
		}
		old.Data["a"] = "3"
		_, err = maps.Update(ctx, old, metav1.UpdateOptions{})
		return refused(err, apierrors.IsConflict, `Operation cannot be fulfilled on configmaps "contested": the object has been modified; please apply your changes to the latest version and try again`)
	})
	check("IsInvalid: every cause, by field and kind", func(ctx context.Context) error {
		bad := deployment("Bad_Name", -1)
		bad.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
		bad.Spec.Template.Spec.Containers[0].Name = ""
		bad.Spec.Template.Spec.Containers[0].Image = ""
		bad.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		_, err := deployments.Create(ctx, bad, options())
		return all(causes(err, "metadata.name: FieldValueInvalid", "spec.replicas: FieldValueInvalid", "spec.template.metadata.labels: FieldValueInvalid",
			"spec.template.spec.containers[0].name: FieldValueRequired", "spec.template.spec.containers[0].image: FieldValueRequired",
			"spec.template.spec.restartPolicy: FieldValueNotSupported"))
	})
	check("IsInvalid: the whole message of one cause", func(ctx context.Context) error {
		_, err := maps.Create(ctx, configMap("Nope"), options())
		return refused(err, apierrors.IsInvalid, `ConfigMap "Nope" is invalid: metadata.name: Invalid value: "Nope": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`)
	})
	check("IsInvalid: what may not change", func(ctx context.Context) error {
		made, err := deployments.Create(ctx, deployment("fixed", 0), options())
		if err != nil {
			return err
		}
		_, err = deployments.Patch(ctx, made.Name, types.StrategicMergePatchType,
			[]byte(`{"spec":{"selector":{"matchLabels":{"more":"x"}},"template":{"metadata":{"labels":{"more":"x"}}}}}`), metav1.PatchOptions{})
		return causes(err, "spec.selector: FieldValueInvalid")
	})
	check("a namespace that there is not is not found", func(ctx context.Context) error {
		_, err := typed.CoreV1().ConfigMaps("go-nowhere").Create(ctx, configMap("a"), options())
		return refused(err, apierrors.IsNotFound, `namespaces "go-nowhere" not found`)
	})
	check("another namespace in the body than in the path is a bad request", func(ctx context.Context) error {
		object := configMap("a")
		object.Namespace = "default"
		_, err := maps.Create(ctx, object, options())
		return refused(err, apierrors.IsBadRequest, "the namespace of the provided object does not match the namespace sent on the request")
	})
	check("a resourceVersion in a creation is refused", func(ctx context.Context) error {
		object := configMap("a")
		object.ResourceVersion = "1"
		_, err := maps.Create(ctx, object, options())
		return same("message", fmt.Sprint(err), "resourceVersion should not be set on objects to be created")
	})
	check("strict field validation refuses unknown and duplicate fields by name", func(ctx context.Context) error {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "strict"}, "dada": map[string]any{"a": "b"}}}
		_, err := untypedMaps.Create(ctx, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		_, patch := untypedMaps.Patch(ctx, "twice", types.MergePatchType, []byte(`{"dada":{"a":"b"}}`), metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict})
		return all(refused(err, apierrors.IsBadRequest, `ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "dada"`),
			causes(patch, "patch: FieldValueInvalid"), matches("patch", fmt.Sprint(patch), `strict decoding error: unknown field "dada"`))
	})
	check("field validation warns otherwise, and the client hears it", func(ctx context.Context) error {
		heard := &warnings{}
		warned := rest.CopyConfig(config)
		warned.WarningHandler = heard
		client, err := dynamic.NewForConfig(warned)
		if err != nil {
			return err
		}
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "warned"}, "dada": "x", "data": map[string]any{"a": "b"}}}
		if _, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(ns).Create(ctx, object, options()); err != nil {
			return err
		}
		return same("warnings", heard.texts, []string{`299 unknown field "dada"`})
	})
	check("a value of the wrong type is a bad request", func(ctx context.Context) error {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "numbers"}, "data": map[string]any{"a": int64(1)}}}
		_, err := untypedMaps.Create(ctx, object, options())
		return all(same("IsBadRequest", apierrors.IsBadRequest(err), true), matches("message", fmt.Sprint(err), `^ConfigMap in version "v1" cannot be handled as a ConfigMap: `))
	})
	check("what a resource does not offer is not allowed; a type of body that there is not is not supported", func(ctx context.Context) error {
		err := typed.CoreV1().RESTClient().Put().Namespace(ns).Resource("configmaps").Body([]byte("{}")).Do(ctx).Error()
		other := typed.CoreV1().RESTClient().Post().Namespace(ns).Resource("configmaps").SetHeader("Content-Type", "text/csv").Body([]byte("a,b")).Do(ctx).Error()
		patch := typed.CoreV1().RESTClient().Patch("application/nothing").Namespace(ns).Resource("configmaps").Name("twice").Body([]byte("{}")).Do(ctx).Error()
		return all(same("PUT on a collection", apierrors.IsMethodNotSupported(err), true), same("text/csv", apierrors.IsUnsupportedMediaType(other), true),
			same("patch", apierrors.IsUnsupportedMediaType(patch), true))
	})
	check("an object of 3 MiB and more is too large", func(ctx context.Context) error {
		_, err := maps.Create(ctx, configMap("large", "a", string(make([]byte, 3<<20+1))), options())
		return same("IsRequestEntityTooLargeError", apierrors.IsRequestEntityTooLargeError(err), true)
	})
	check("a bad selector is a bad request", func(ctx context.Context) error {
		_, err := maps.List(ctx, metav1.ListOptions{FieldSelector: "data.a=b"})
		_, secret := typed.CoreV1().Secrets(ns).List(ctx, metav1.ListOptions{FieldSelector: "data.a=b"})
		_, label := maps.List(ctx, metav1.ListOptions{LabelSelector: "a in b"})
		return all(refused(err, apierrors.IsBadRequest, `"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"`),
			refused(secret, apierrors.IsBadRequest, "field label not supported: data.a"), same("label selector", apierrors.IsBadRequest(label), true))
	})
}
