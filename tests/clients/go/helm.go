// SPDX-License-Identifier: Apache-2.0

// An installer of releases, as Helm 4 works: server-side apply of all documents, a Secret for each revision, an upgrade that takes away
// what is no longer in it, a roll-back, waiting for what was installed.
package main

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

const chart = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: app-settings}
data: {level: "$LEVEL"}
---
apiVersion: v1
kind: Service
metadata: {name: app}
spec:
  selector: {app: app}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  replicas: $REPLICAS
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      serviceAccountName: app
      terminationGracePeriodSeconds: 0
      containers:
      - name: app
        image: $IMAGE
        imagePullPolicy: IfNotPresent
        command: [sleep, "100000"]
        envFrom: [{configMapRef: {name: app-settings}}]
`

func checkHelm(ns string) {
	render := func(level, replicas string, without string) (found []*unstructured.Unstructured, err error) {
		text := strings.NewReplacer("$LEVEL", level, "$REPLICAS", replicas, "$IMAGE", image).Replace(chart)
		for _, document := range strings.Split(text, "\n---\n") {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				return nil, err
			}
			if object.GetKind() == without {
				continue
			}
			object.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
			object.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "app", "meta.helm.sh/release-namespace": ns})
			found = append(found, object)
		}
		return found, nil
	}
	install := func(ctx context.Context, revision int, objects []*unstructured.Unstructured) error {
		for _, object := range objects {
			located, err := locate(object, ns)
			if err != nil {
				return err
			}
			if _, err := located.resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "helm", Force: true}); err != nil {
				return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
		_, err := typed.CoreV1().Secrets(ns).Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("sh.helm.release.v1.app.v%d", revision), Labels: map[string]string{"owner": "helm", "name": "app", "status": "deployed", "version": fmt.Sprint(revision)}},
			Type:       "helm.sh/release.v1", Data: map[string][]byte{"release": []byte(strings.Repeat("H4sI", 5000))}}, options())
		return err
	}
	rolledOut := func(ctx context.Context, replicas int32) error {
		lw := cache.NewListWatchFromClient(typed.AppsV1().RESTClient(), "deployments", ns, fields.OneTermEqualSelector("metadata.name", "app"))
		_, err := watchtools.UntilWithSync(ctx, lw, &appsv1.Deployment{}, nil, func(event watch.Event) (bool, error) {
			d, ok := event.Object.(*appsv1.Deployment)
			return ok && d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas == replicas && d.Status.AvailableReplicas == replicas && d.Status.Replicas == replicas, nil
		})
		return err
	}
	check("a release is installed, and waited for", func(ctx context.Context) error {
		objects, err := render("info", "2", "")
		if err != nil {
			return err
		}
		return all(install(ctx, 1, objects), rolledOut(ctx, 2))
	})
	check("an upgrade changes what changed, leaves what did not, and takes away what is no longer there", func(ctx context.Context) error {
		account, err := typed.CoreV1().ServiceAccounts(ns).Get(ctx, "app", metav1.GetOptions{})
		if err != nil {
			return err
		}
		objects, err := render("debug", "1", "Service")
		if err != nil {
			return err
		}
		if err := all(install(ctx, 2, objects), typed.CoreV1().Services(ns).Delete(ctx, "app", metav1.DeleteOptions{}), rolledOut(ctx, 1)); err != nil {
			return err
		}
		same1, err := typed.CoreV1().ServiceAccounts(ns).Get(ctx, "app", metav1.GetOptions{})
		if err != nil {
			return err
		}
		settings, err := typed.CoreV1().ConfigMaps(ns).Get(ctx, "app-settings", metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, service := typed.CoreV1().Services(ns).Get(ctx, "app", metav1.GetOptions{})
		return all(same("service account", same1.ResourceVersion, account.ResourceVersion), same("level", settings.Data["level"], "debug"), same("service is gone", apierrors.IsNotFound(service), true))
	})
	check("a roll-back reads the release's secrets by their labels and type", func(ctx context.Context) error {
		list, err := typed.CoreV1().Secrets(ns).List(ctx, metav1.ListOptions{LabelSelector: "owner=helm,name=app,status=deployed", FieldSelector: "type=helm.sh/release.v1"})
		if err != nil {
			return err
		}
		objects, err := render("info", "2", "")
		if err != nil {
			return err
		}
		return all(same("releases", len(list.Items), 2), install(ctx, 3, objects), rolledOut(ctx, 2))
	})
	check("an owner of a field outside the release conflicts unless forced", func(ctx context.Context) error {
		_, err := typed.AppsV1().Deployments(ns).Patch(ctx, "app", "application/merge-patch+json", []byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{FieldManager: "autoscaler"})
		if err != nil {
			return err
		}
		objects, err := render("info", "2", "")
		if err != nil {
			return err
		}
		var deployment runtime.Object
		for _, object := range objects {
			if object.GetKind() != "Deployment" {
				continue
			}
			located, err := locate(object, ns)
			if err != nil {
				return err
			}
			_, conflict := located.resource.Apply(ctx, "app", object, metav1.ApplyOptions{FieldManager: "helm"})
			if !apierrors.IsConflict(conflict) {
				return fmt.Errorf("want a conflict, got %v", conflict)
			}
			if err := matches("conflict", conflict.Error(), `^Apply failed with 1 conflict: conflict with "autoscaler" using apps/v1 at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ: \.spec\.replicas$`); err != nil {
				return err
			}
			deployment, err = located.resource.Apply(ctx, "app", object, metav1.ApplyOptions{FieldManager: "helm", Force: true})
			if err != nil {
				return err
			}
		}
		replicas, _, _ := unstructured.NestedInt64(deployment.(*unstructured.Unstructured).Object, "spec", "replicas")
		return same("replicas", replicas, int64(2))
	})
}
