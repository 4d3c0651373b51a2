// SPDX-License-Identifier: Apache-2.0

// The typed clients, which post protobuf: what a controller does with the objects of its kinds.
package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
)

func configMap(name string, data ...string) *corev1.ConfigMap {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{}}
	for n := 0; n+1 < len(data); n += 2 {
		object.Data[data[n]] = data[n+1]
	}
	return object
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: pointer[int64](0),
					Containers: []corev1.Container{{
						Name: "main", Image: image, Command: []string{"sleep", "100000"},
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("0.0010"), "memory": resource.MustParse("1Mi")}},
					}},
				},
			},
		},
	}
}

func checkTyped(ns string) {
	maps := typed.CoreV1().ConfigMaps(ns)
	check("a typed client posts protobuf, is answered in protobuf, and gets what it sent", func(ctx context.Context) error {
		want := configMap("bytes", "text", "grüße\n", "empty", "")
		want.BinaryData = map[string][]byte{"blob": {0, 1, 255}}
		want.Labels = map[string]string{"example.com/part": "typed"}
		got, err := maps.Create(ctx, want, options())
		if err != nil {
			return err
		}
		request, response := sent.last("POST")
		return all(same("request's type", request, runtime.ContentTypeProtobuf), same("answer's type", response, runtime.ContentTypeProtobuf),
			same("data", got.Data, want.Data), same("binaryData", got.BinaryData, want.BinaryData), same("labels", got.Labels, want.Labels),
			matches("uid", string(got.UID), `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`),
			matches("resourceVersion", got.ResourceVersion, `^[1-9]\d*$`), same("managers", got.ManagedFields[0].Manager, "clients-test"))
	})
	check("defaults, quantities and generation of a Deployment made in protobuf", func(ctx context.Context) error {
		got, err := typed.AppsV1().Deployments(ns).Create(ctx, deployment("defaults", 0), options())
		if err != nil {
			return err
		}
		container := got.Spec.Template.Spec.Containers[0]
		return all(same("strategy", got.Spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType),
			same("maxSurge", *got.Spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%")),
			same("revisionHistoryLimit", *got.Spec.RevisionHistoryLimit, int32(10)), same("progressDeadlineSeconds", *got.Spec.ProgressDeadlineSeconds, int32(600)),
			same("imagePullPolicy", container.ImagePullPolicy, corev1.PullAlways), same("terminationMessagePath", container.TerminationMessagePath, "/dev/termination-log"),
			same("cpu", container.Resources.Requests.Cpu().String(), "1m"), same("dnsPolicy", got.Spec.Template.Spec.DNSPolicy, corev1.DNSClusterFirst),
			same("generation", got.Generation, int64(1)))
	})
	check("an update of the spec raises the generation, one of labels or status does not", func(ctx context.Context) error {
		deployments := typed.AppsV1().Deployments(ns)
		if _, err := deployments.Create(ctx, deployment("generations", 0), options()); err != nil {
			return err
		}
		change := func(how func(*appsv1.Deployment)) (generation int64, err error) {
			err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
				now, err := deployments.Get(ctx, "generations", metav1.GetOptions{})
				if err != nil {
					return err
				}
				how(now)
				now, err = deployments.Update(ctx, now, metav1.UpdateOptions{})
				if err == nil {
					generation = now.Generation
				}
				return err
			})
			return generation, err
		}
		labelled, err := change(func(d *appsv1.Deployment) { d.Labels["more"] = "yes"; d.Status.Replicas = 77 })
		if err != nil {
			return err
		}
		changed, err := change(func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 5 })
		if err != nil {
			return err
		}
		now, err := deployments.Get(ctx, "generations", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return all(same("after labels", labelled, int64(1)), same("after the spec", changed, int64(2)), same("status.replicas", now.Status.Replicas, int32(0)))
	})
	check("a write to status changes the status, and nothing of the spec", func(ctx context.Context) error {
		job := typed.CoreV1().ReplicationControllers(ns)
		_, err := job.Create(ctx, &corev1.ReplicationController{
			ObjectMeta: metav1.ObjectMeta{Name: "statuses"},
			Spec: corev1.ReplicationControllerSpec{Replicas: pointer[int32](0), Selector: map[string]string{"app": "statuses"},
				Template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "statuses"}}, Spec: deployment("x", 0).Spec.Template.Spec}},
		}, options())
		if err != nil {
			return err
		}
		var got *corev1.ReplicationController
		if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			now, err := job.Get(ctx, "statuses", metav1.GetOptions{})
			if err != nil {
				return err
			}
			now.Spec.MinReadySeconds = 99
			now.Status.Conditions = []corev1.ReplicationControllerCondition{{Type: "Checked", Status: corev1.ConditionTrue, Reason: "Because"}}
			got, err = job.UpdateStatus(ctx, now, metav1.UpdateOptions{})
			return err
		}); err != nil {
			return err
		}
		if len(got.Status.Conditions) != 1 {
			return fmt.Errorf("conditions: %+v", got.Status.Conditions)
		}
		return all(same("minReadySeconds", got.Spec.MinReadySeconds, int32(0)), same("reason", got.Status.Conditions[0].Reason, "Because"), same("generation", got.Generation, int64(1)))
	})
	check("generateName: ten creations are ten names of the right shape", func(ctx context.Context) error {
		names := map[string]bool{}
		for n := 0; n < 10; n++ {
			got, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "made-"}}, options())
			if err != nil {
				return err
			}
			if err := matches("name", got.Name, `^made-[bcdfghjklmnpqrstvwxz2456789]{5}$`); err != nil {
				return err
			}
			names[got.Name] = true
		}
		return same("names", len(names), 10)
	})
	check("RetryOnConflict: ten writers raise one counter, and none is lost", func(ctx context.Context) error {
		if _, err := maps.Create(ctx, configMap("counter", "n", ""), options()); err != nil {
			return err
		}
		var writers sync.WaitGroup
		failed := make(chan error, 10)
		backoff := retry.DefaultBackoff
		backoff.Steps = 30
		backoff.Factor = 1.2
		for n := 0; n < 10; n++ {
			writers.Add(1)
			go func() {
				defer writers.Done()
				failed <- retry.RetryOnConflict(backoff, func() error {
					now, err := maps.Get(ctx, "counter", metav1.GetOptions{})
					if err != nil {
						return err
					}
					now.Data["n"] += "|"
					_, err = maps.Update(ctx, now, metav1.UpdateOptions{})
					return err
				})
			}()
		}
		writers.Wait()
		for n := 0; n < 10; n++ {
			if err := <-failed; err != nil {
				return err
			}
		}
		got, err := maps.Get(ctx, "counter", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return same("count", got.Data["n"], strings.Repeat("|", 10))
	})
	check("an update that changes nothing is no write: the same resourceVersion", func(ctx context.Context) error {
		before, err := maps.Get(ctx, "bytes", metav1.GetOptions{})
		if err != nil {
			return err
		}
		after, err := maps.Update(ctx, before.DeepCopy(), metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		return same("resourceVersion", after.ResourceVersion, before.ResourceVersion)
	})
	check("an update without a resourceVersion overwrites", func(ctx context.Context) error {
		got, err := maps.Update(ctx, configMap("bytes", "only", "this"), metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		return same("data", got.Data, map[string]string{"only": "this"})
	})
	check("dry run: create, update, patch and delete answer as if, and change nothing", func(ctx context.Context) error {
		dry := []string{metav1.DryRunAll}
		before, err := maps.Create(ctx, configMap("dry", "a", "1"), options())
		if err != nil {
			return err
		}
		made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "dry-"}}, metav1.CreateOptions{DryRun: dry})
		if err != nil {
			return err
		}
		changed := before.DeepCopy()
		changed.Data["a"] = "2"
		updated, err := maps.Update(ctx, changed, metav1.UpdateOptions{DryRun: dry})
		if err != nil {
			return err
		}
		patched, err := maps.Patch(ctx, "dry", "application/merge-patch+json", []byte(`{"data":{"b":"3"}}`), metav1.PatchOptions{DryRun: dry})
		if err != nil {
			return err
		}
		if err := maps.Delete(ctx, "dry", metav1.DeleteOptions{DryRun: dry}); err != nil {
			return err
		}
		_, absent := maps.Get(ctx, made.Name, metav1.GetOptions{})
		after, err := maps.Get(ctx, "dry", metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, twice := maps.Create(ctx, configMap("dry"), metav1.CreateOptions{DryRun: dry})
		return all(matches("generated name", made.Name, `^dry-.{5}$`), same("made", apierrors.IsNotFound(absent), true), same("updated", updated.Data["a"], "2"),
			same("patched", patched.Data["b"], "3"), same("after", after, before), refused(twice, apierrors.IsAlreadyExists, `configmaps "dry" already exists`))
	})
	check("an immutable ConfigMap and Secret keep their data", func(ctx context.Context) error {
		frozen := configMap("frozen", "a", "1")
		frozen.Immutable = pointer(true)
		if _, err := maps.Create(ctx, frozen, options()); err != nil {
			return err
		}
		frozen.Data["a"] = "2"
		_, err := maps.Update(ctx, frozen, metav1.UpdateOptions{})
		return all(causes(err, "data: FieldValueForbidden"),
			refused(err, apierrors.IsInvalid, "ConfigMap \"frozen\" is invalid: data: Forbidden: field is immutable when `immutable` is set"))
	})
	check("a Secret's stringData becomes data, and is not read back", func(ctx context.Context) error {
		got, err := typed.CoreV1().Secrets(ns).Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "words"}, StringData: map[string]string{"word": "hush"}, Data: map[string][]byte{"word": []byte("loud")}}, options())
		if err != nil {
			return err
		}
		return all(same("data", string(got.Data["word"]), "hush"), same("stringData", len(got.StringData), 0), same("type", got.Type, corev1.SecretTypeOpaque))
	})
	check("a Service gets a cluster address of its own, and keeps it", func(ctx context.Context) error {
		services := typed.CoreV1().Services(ns)
		got, err := services.Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "addressed"},
			Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "nobody"}, Ports: []corev1.ServicePort{{Port: 80}}}}, options())
		if err != nil {
			return err
		}
		address := got.Spec.ClusterIP
		got.Spec.Ports = []corev1.ServicePort{{Port: 81, TargetPort: intstr.FromString("http")}}
		got.Spec.ClusterIP, got.Spec.ClusterIPs = "", nil
		again, err := services.Update(ctx, got, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		return all(matches("clusterIP", address, `^\d+\.\d+\.\d+\.\d+$`), same("kept", again.Spec.ClusterIP, address), same("clusterIPs", again.Spec.ClusterIPs, []string{address}),
			same("type", again.Spec.Type, corev1.ServiceTypeClusterIP), same("targetPort", again.Spec.Ports[0].TargetPort, intstr.FromString("http")))
	})
}
