// SPDX-License-Identifier: Apache-2.0

// The scale subresource, by its own client and by the kinds' clients.
package main

import (
	"context"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/retry"
)

func checkScale(ns string) {
	deployments := typed.AppsV1().Deployments(ns)
	target := schema.GroupResource{Group: "apps", Resource: "deployments"}
	var scales scale.ScalesGetter
	check("the scale client reads what the Deployment wants", func(ctx context.Context) error {
		made, err := deployments.Create(ctx, deployment("scaled", 0), options())
		if err != nil {
			return err
		}
		if scales, err = scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(disco)); err != nil {
			return err
		}
		got, err := scales.Scales(ns).Get(ctx, target, "scaled", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return all(same("replicas", got.Spec.Replicas, int32(0)), same("selector", got.Status.Selector, "app=scaled"), same("uid", got.UID, made.UID))
	})
	check("an update of the scale changes the Deployment alone in its replicas, and a stale one conflicts", func(ctx context.Context) error {
		old, err := deployments.GetScale(ctx, "scaled", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			fresh, err := deployments.GetScale(ctx, "scaled", metav1.GetOptions{})
			if err != nil {
				return err
			}
			fresh.Spec.Replicas = 1
			_, err = deployments.UpdateScale(ctx, "scaled", fresh, metav1.UpdateOptions{})
			return err
		}); err != nil {
			return err
		}
		_, stale := deployments.UpdateScale(ctx, "scaled", old, metav1.UpdateOptions{})
		now, err := deployments.Get(ctx, "scaled", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return all(same("replicas", *now.Spec.Replicas, int32(1)), same("generation", now.Generation, int64(2)), same("stale", apierrors.IsConflict(stale), true))
	})
	check("a patch of the scale, and a scale that may not be", func(ctx context.Context) error {
		got, err := scales.Scales(ns).Patch(ctx, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "scaled", types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		_, bad := deployments.UpdateScale(ctx, "scaled", &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "scaled", Namespace: ns}, Spec: autoscalingv1.ScaleSpec{Replicas: -1}}, metav1.UpdateOptions{})
		_, absent := deployments.GetScale(ctx, "nope", metav1.GetOptions{})
		return all(same("replicas", got.Spec.Replicas, int32(0)), causes(bad, "spec.replicas: FieldValueInvalid"), refused(absent, apierrors.IsNotFound, `deployments/scale.apps "nope" not found`))
	})
}
