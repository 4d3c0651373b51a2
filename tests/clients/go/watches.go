// SPDX-License-Identifier: Apache-2.0

// Watches: what they begin with, what selectors make of changes, bookmarks, ends, and a past that is gone.
package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// next gives one event as "TYPE NAME".
func next(ctx context.Context, watcher watch.Interface) (string, *corev1.ConfigMap, error) {
	select {
	case event, more := <-watcher.ResultChan():
		if !more {
			return "", nil, fmt.Errorf("the watch has ended")
		}
		object, ok := event.Object.(*corev1.ConfigMap)
		if !ok {
			return "", nil, apierrors.FromObject(event.Object)
		}
		return string(event.Type) + " " + object.Name, object, nil
	case <-ctx.Done():
		return "", nil, fmt.Errorf("no event in time")
	}
}

func expectEvents(ctx context.Context, watcher watch.Interface, want ...string) error {
	for _, one := range want {
		got, _, err := next(ctx, watcher)
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", one, err)
		}
		if got != one {
			return fmt.Errorf("want %s, got %s", one, got)
		}
	}
	return nil
}

// forget makes the server drop its past: much text is written over and over, until the resourceVersion has expired.
func forget(ctx context.Context, ns, revision string) error {
	maps := typed.CoreV1().ConfigMaps(ns)
	if _, err := maps.Create(ctx, configMap("ballast"), options()); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	for n := 0; n < 400; n++ {
		patch := fmt.Sprintf(`{"data":{"n":"%d","text":"%s"}}`, n, strings.Repeat("x", 700_000))
		if _, err := maps.Patch(ctx, "ballast", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return err
		}
		_, err := maps.List(ctx, metav1.ListOptions{ResourceVersion: revision, ResourceVersionMatch: metav1.ResourceVersionMatchExact, Limit: 1})
		if apierrors.IsResourceExpired(err) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("after 400 large writes resourceVersion %s has not expired", revision)
}

func checkWatches(ns string) {
	maps := typed.CoreV1().ConfigMaps(ns)
	quiet := metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"}
	check("a watch in protobuf: added, modified, deleted, in order, each of its resourceVersion", func(ctx context.Context) error {
		now, err := maps.List(ctx, quiet)
		if err != nil {
			return err
		}
		how := quiet
		how.ResourceVersion = now.ResourceVersion
		watcher, err := maps.Watch(ctx, how)
		if err != nil {
			return err
		}
		defer watcher.Stop()
		made, err := maps.Create(ctx, configMap("seen"), options())
		if err != nil {
			return err
		}
		changed, err := maps.Patch(ctx, "seen", types.MergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		if err := maps.Delete(ctx, "seen", metav1.DeleteOptions{}); err != nil {
			return err
		}
		_, first, err := next(ctx, watcher)
		if err != nil {
			return err
		}
		_, second, err := next(ctx, watcher)
		if err != nil {
			return err
		}
		what, third, err := next(ctx, watcher)
		if err != nil {
			return err
		}
		_, answer := sent.last("WATCH")
		return all(same("answer's type", answer, "application/vnd.kubernetes.protobuf;stream=watch"), same("added", first, made), same("modified", second, changed), same("deleted", what, "DELETED seen"),
			same("the deleted object's data", third.Data, map[string]string{"a": "b"}), same("its resourceVersion is the deletion's", third.ResourceVersion != changed.ResourceVersion, true))
	})
	check("a watch without a resourceVersion begins with what there is", func(ctx context.Context) error {
		for _, name := range []string{"there-1", "there-2"} {
			if _, err := maps.Create(ctx, configMap(name), options()); err != nil {
				return err
			}
		}
		for _, revision := range []string{"", "0"} {
			how := quiet
			how.ResourceVersion = revision
			watcher, err := maps.Watch(ctx, how)
			if err != nil {
				return err
			}
			err = expectEvents(ctx, watcher, "ADDED there-1", "ADDED there-2")
			watcher.Stop()
			if err != nil {
				return err
			}
		}
		return nil
	})
	check("a selector: what begins to match is added, what no longer does is deleted", func(ctx context.Context) error {
		watcher, err := maps.Watch(ctx, metav1.ListOptions{LabelSelector: "colour=red"})
		if err != nil {
			return err
		}
		defer watcher.Stop()
		made, err := maps.Create(ctx, configMap("chameleon"), options())
		if err != nil {
			return err
		}
		for _, colour := range []string{`"red"`, `"red","more":"x"`, `"blue"`, `"red"`} {
			if _, err := maps.Patch(ctx, made.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"colour":`+colour+`}}}`), metav1.PatchOptions{}); err != nil {
				return err
			}
		}
		if err := maps.Delete(ctx, made.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		for n, want := range []string{"ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"} {
			got, object, err := next(ctx, watcher)
			if err != nil {
				return err
			}
			if err := all(same("event", got, want+" chameleon"), same("colour", object.Labels["colour"], "red")); err != nil {
				return fmt.Errorf("event %d: %w", n, err)
			}
		}
		return nil
	})
	check("a streamed list: what there is, a bookmark that ends it, then what happens", func(ctx context.Context) error {
		how := quiet
		how.SendInitialEvents, how.AllowWatchBookmarks, how.ResourceVersionMatch = pointer(true), true, metav1.ResourceVersionMatchNotOlderThan
		watcher, err := maps.Watch(ctx, how)
		if err != nil {
			return err
		}
		defer watcher.Stop()
		if err := expectEvents(ctx, watcher, "ADDED there-1", "ADDED there-2"); err != nil {
			return err
		}
		what, bookmark, err := next(ctx, watcher)
		if err != nil {
			return err
		}
		if _, err := maps.Create(ctx, configMap("there-3"), options()); err != nil {
			return err
		}
		return all(same("bookmark", what, "BOOKMARK "), same("annotations", bookmark.Annotations, map[string]string{"k8s.io/initial-events-end": "true"}),
			matches("resourceVersion", bookmark.ResourceVersion, `^[1-9]\d*$`), expectEvents(ctx, watcher, "ADDED there-3"))
	})
	check("timeoutSeconds ends a watch in good order, a bookmark shortly before", func(ctx context.Context) error {
		started := time.Now()
		now, err := maps.List(ctx, quiet)
		if err != nil {
			return err
		}
		watcher, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: now.ResourceVersion, TimeoutSeconds: pointer[int64](3), AllowWatchBookmarks: true})
		if err != nil {
			return err
		}
		bookmarks := 0
		for event := range watcher.ResultChan() {
			if event.Type != watch.Bookmark {
				return fmt.Errorf("%s %v", event.Type, event.Object)
			}
			bookmarks++
		}
		took := time.Since(started)
		return all(same("lasted 2.5 s to a minute", took > 2500*time.Millisecond && took < time.Minute, true), same("a bookmark came", bookmarks > 0, true))
	})
	check("watch options that do not go together are invalid", func(ctx context.Context) error {
		_, err := maps.Watch(ctx, metav1.ListOptions{SendInitialEvents: pointer(true)})
		return causes(err, "resourceVersionMatch: FieldValueForbidden")
	})
	check("410: a watch from a past that is gone says Expired, as does its list; a token comes with another that works", func(ctx context.Context) error {
		for _, name := range []string{"old-1", "old-2", "old-3"} {
			if _, err := maps.Create(ctx, configMap(name), options()); err != nil {
				return err
			}
		}
		first, err := maps.List(ctx, metav1.ListOptions{Limit: 2})
		if err != nil {
			return err
		}
		if err := forget(ctx, ns, first.ResourceVersion); err != nil {
			return err
		}
		var expired error
		watcher, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: first.ResourceVersion})
		if err != nil {
			expired = err
		} else {
			event := <-watcher.ResultChan()
			expired = apierrors.FromObject(event.Object)
			watcher.Stop()
		}
		if err := all(same("IsResourceExpired", apierrors.IsResourceExpired(expired), true), matches("message", expired.Error(), `^too old resource version: \d+ \(\d+\)$`)); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		_, err = maps.List(ctx, metav1.ListOptions{Limit: 2, Continue: first.Continue})
		if !apierrors.IsResourceExpired(err) {
			return fmt.Errorf("continue: %v", err)
		}
		status := err.(apierrors.APIStatus).Status()
		again := status.ListMeta.Continue
		rest, err := maps.List(ctx, metav1.ListOptions{Continue: again})
		if err != nil {
			return fmt.Errorf("continue with the new token: %w", err)
		}
		everything, err := maps.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		after := 0 // in the order of names: "ballast" has come before the first page
		for _, item := range everything.Items {
			if item.Name > first.Items[1].Name {
				after++
			}
		}
		return all(matches("message", status.Message, `^The provided continue parameter is too old to display a consistent list result\.`), same("the rest", len(rest.Items), after))
	})
}
