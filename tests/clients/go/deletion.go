// SPDX-License-Identifier: Apache-2.0

// Deletions: preconditions, finalizers, owners and what becomes of theirs, collections, namespaces.
package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func checkDeletion(ns string) {
	maps := typed.CoreV1().ConfigMaps(ns)
	get := func(ctx context.Context, name string) (*corev1.ConfigMap, error) {
		return maps.Get(ctx, name, metav1.GetOptions{})
	}
	gone := func(ctx context.Context, name string) error {
		return until(ctx, name+" is gone", func() (bool, string) {
			_, err := get(ctx, name)
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	}
	family := func(ctx context.Context, name string, block bool) error { // an owner, and two that are owned
		owner, err := maps.Create(ctx, configMap(name), options())
		if err != nil {
			return err
		}
		for _, suffix := range []string{"-1", "-2"} {
			child := configMap(name + suffix)
			child.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: owner.UID, BlockOwnerDeletion: &block}}
			if _, err := maps.Create(ctx, child, options()); err != nil {
				return err
			}
		}
		return nil
	}
	with := func(policy metav1.DeletionPropagation) metav1.DeleteOptions {
		return metav1.DeleteOptions{PropagationPolicy: &policy}
	}

	check("preconditions: another uid or resourceVersion conflicts, the right ones delete", func(ctx context.Context) error {
		made, err := maps.Create(ctx, configMap("conditional"), options())
		if err != nil {
			return err
		}
		wrong := types.UID("00000000-0000-4000-8000-000000000000")
		uid := maps.Delete(ctx, "conditional", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
		revision := maps.Delete(ctx, "conditional", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: pointer("1")}})
		return all(same("uid", apierrors.IsConflict(uid), true), matches("uid", fmt.Sprint(uid), `the UID in the precondition \(00000000-0000-4000-8000-000000000000\) does not match the UID in record \(`+string(made.UID)+`\)`),
			same("resourceVersion", apierrors.IsConflict(revision), true),
			maps.Delete(ctx, "conditional", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &made.UID, ResourceVersion: &made.ResourceVersion}}), gone(ctx, "conditional"))
	})
	check("a finalizer holds an object that is being deleted; without it the object goes", func(ctx context.Context) error {
		object := configMap("held")
		object.Finalizers = []string{"example.com/hold"}
		if _, err := maps.Create(ctx, object, options()); err != nil {
			return err
		}
		if err := maps.Delete(ctx, "held", metav1.DeleteOptions{}); err != nil {
			return err
		}
		held, err := get(ctx, "held")
		if err != nil {
			return err
		}
		again := maps.Delete(ctx, "held", metav1.DeleteOptions{})
		_, more := maps.Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}`), metav1.PatchOptions{})
		_, err = maps.Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		return all(same("deletionTimestamp is set", held.DeletionTimestamp != nil, true), same("deletionGracePeriodSeconds", *held.DeletionGracePeriodSeconds, int64(0)), again, err,
			causes(more, "metadata.finalizers: FieldValueForbidden"), gone(ctx, "held"))
	})
	check("in the background: the owner goes at once, what it owned follows", func(ctx context.Context) error {
		return all(family(ctx, "background", false), maps.Delete(ctx, "background", with(metav1.DeletePropagationBackground)), gone(ctx, "background"), gone(ctx, "background-1"), gone(ctx, "background-2"))
	})
	check("in the foreground: the owner waits for what it owns, with a finalizer", func(ctx context.Context) error {
		if err := family(ctx, "foreground", true); err != nil {
			return err
		}
		if _, err := maps.Patch(ctx, "foreground-1", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/hold"]}}`), metav1.PatchOptions{}); err != nil {
			return err
		}
		if err := maps.Delete(ctx, "foreground", with(metav1.DeletePropagationForeground)); err != nil {
			return err
		}
		if err := gone(ctx, "foreground-2"); err != nil {
			return err
		}
		waiting, err := get(ctx, "foreground")
		if err != nil {
			return fmt.Errorf("the owner did not wait: %w", err)
		}
		_, err = maps.Patch(ctx, "foreground-1", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		return all(same("finalizers", waiting.Finalizers, []string{"foregroundDeletion"}), err, gone(ctx, "foreground"), gone(ctx, "foreground-1"))
	})
	check("orphaned: what was owned stays, without an owner", func(ctx context.Context) error {
		if err := all(family(ctx, "orphan", false), maps.Delete(ctx, "orphan", with(metav1.DeletePropagationOrphan)), gone(ctx, "orphan")); err != nil {
			return err
		}
		for _, name := range []string{"orphan-1", "orphan-2"} {
			left, err := get(ctx, name)
			if err != nil {
				return err
			}
			if len(left.OwnerReferences) > 0 {
				return fmt.Errorf("%s is owned by %+v", name, left.OwnerReferences)
			}
		}
		return nil
	})
	check("the collector takes what is owned by nobody that there is, and leaves who has another owner", func(ctx context.Context) error {
		owner, err := maps.Create(ctx, configMap("owner"), options())
		if err != nil {
			return err
		}
		living := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}
		dead := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "never", UID: "00000000-0000-4000-8000-000000000001"}
		lost, kept := configMap("lost"), configMap("kept")
		lost.OwnerReferences = []metav1.OwnerReference{dead}
		kept.OwnerReferences = []metav1.OwnerReference{dead, living}
		for _, object := range []*corev1.ConfigMap{kept, lost} {
			if _, err := maps.Create(ctx, object, options()); err != nil {
				return err
			}
		}
		if err := gone(ctx, "lost"); err != nil {
			return err
		}
		_, err = get(ctx, "kept")
		return err
	})
	check("a Deployment's ReplicaSets go with it", func(ctx context.Context) error {
		deployments, sets := typed.AppsV1().Deployments(ns), typed.AppsV1().ReplicaSets(ns)
		if _, err := deployments.Create(ctx, deployment("parent", 0), options()); err != nil {
			return err
		}
		count := func(want int) error {
			return until(ctx, fmt.Sprintf("%d ReplicaSets", want), func() (bool, string) {
				list, err := sets.List(ctx, metav1.ListOptions{LabelSelector: "app=parent"})
				return err == nil && len(list.Items) == want, fmt.Sprint(list, err)
			})
		}
		return all(count(1), deployments.Delete(ctx, "parent", with(metav1.DeletePropagationForeground)), count(0))
	})
	check("deletecollection takes what its selector matches, and nothing else", func(ctx context.Context) error {
		for n, colour := range []string{"red", "blue", "red"} {
			object := configMap(fmt.Sprintf("many-%d", n))
			object.Labels = map[string]string{"colour": colour}
			if _, err := maps.Create(ctx, object, options()); err != nil {
				return err
			}
		}
		if err := maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "colour=red"}); err != nil {
			return err
		}
		left, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "colour"})
		if err != nil {
			return err
		}
		return all(same("left", len(left.Items), 1), same("it is", left.Items[0].Name, "many-1"))
	})
	check("namespaces have no deletecollection", func(ctx context.Context) error {
		err := typed.CoreV1().RESTClient().Delete().Resource("namespaces").Do(ctx).Error()
		return same("IsMethodNotSupported", apierrors.IsMethodNotSupported(err), true)
	})
	check("a namespace empties itself; what is held keeps it, with a condition that says so; nothing new is let in", func(ctx context.Context) error {
		spaces := typed.CoreV1().Namespaces()
		const name = "go-ending"
		if _, err := spaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, options()); err != nil {
			return err
		}
		inside := typed.CoreV1().ConfigMaps(name)
		held := configMap("held")
		held.Finalizers = []string{"example.com/hold"}
		for _, object := range []*corev1.ConfigMap{held, configMap("free")} {
			if _, err := inside.Create(ctx, object, options()); err != nil {
				return err
			}
		}
		if err := spaces.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		if err := until(ctx, "the namespace says what holds it", func() (bool, string) {
			now, err := spaces.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			for _, condition := range now.Status.Conditions {
				if condition.Type == corev1.NamespaceFinalizersRemaining && condition.Status == corev1.ConditionTrue {
					return now.Status.Phase == corev1.NamespaceTerminating && condition.Reason == "SomeFinalizersRemain" &&
						condition.Message == "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances", fmt.Sprintf("%+v", now.Status)
				}
			}
			return false, fmt.Sprintf("%+v", now.Status)
		}); err != nil {
			return err
		}
		_, late := inside.Create(ctx, configMap("late"), options())
		_, err := inside.Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		return all(refused(late, apierrors.IsForbidden, `configmaps "late" is forbidden: unable to create new content in namespace go-ending because it is being terminated`),
			same("cause", apierrors.HasStatusCause(late, corev1.NamespaceTerminatingCause), true), err, until(ctx, "the namespace is gone", func() (bool, string) {
				_, err := spaces.Get(ctx, name, metav1.GetOptions{})
				return apierrors.IsNotFound(err), fmt.Sprint(err)
			}))
	})
}
