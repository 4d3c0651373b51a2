// SPDX-License-Identifier: Apache-2.0

// Shared informers, which list by watching as this client-go does by default; and what becomes of them when the past expires and when
// the server goes away and comes back.
package main

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// A notebook keeps what handlers were told, in order.
type notebook struct {
	sync.Mutex
	lines []string
}

func (n *notebook) write(line string) {
	n.Lock()
	defer n.Unlock()
	n.lines = append(n.lines, line)
}

// all gives a copy of the lines.
func (n *notebook) all() []string {
	n.Lock()
	defer n.Unlock()
	return slices.Clone(n.lines)
}

func (n *notebook) has(line string) bool { return slices.Contains(n.all(), line) }

func (n *notebook) text() string { return fmt.Sprint(n.all()) }

func (n *notebook) handler() cache.ResourceEventHandlerDetailedFuncs {
	name := func(object any) string {
		if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		return object.(metav1.Object).GetName()
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) { n.write(fmt.Sprintf("add %s %v", name(object), initial)) },
		UpdateFunc: func(old, object any) {
			if old.(metav1.Object).GetResourceVersion() == object.(metav1.Object).GetResourceVersion() {
				n.write("resync " + name(object))
			} else {
				n.write("update " + name(object))
			}
		},
		DeleteFunc: func(object any) { n.write("delete " + name(object)) },
	}
}

func (n *notebook) expect(ctx context.Context, line string) error {
	return until(ctx, line, func() (bool, string) { return n.has(line), n.text() })
}

func checkInformers(ns string) {
	maps := typed.CoreV1().ConfigMaps(ns)
	check("a shared informer: what there is first, then each change, once", func(ctx context.Context) error {
		for n := 0; n < 3; n++ {
			object := configMap(fmt.Sprintf("first-%d", n))
			object.Labels = map[string]string{"n": fmt.Sprint(n)}
			if _, err := maps.Create(ctx, object, options()); err != nil {
				return err
			}
		}
		factory := informers.NewSharedInformerFactoryWithOptions(typed, 0, informers.WithNamespace(ns))
		informer, lister := factory.Core().V1().ConfigMaps().Informer(), factory.Core().V1().ConfigMaps().Lister().ConfigMaps(ns)
		notes := &notebook{}
		registration, err := informer.AddEventHandler(notes.handler())
		if err != nil {
			return err
		}
		if err := informer.AddIndexers(cache.Indexers{"label": func(object any) ([]string, error) { return []string{object.(*corev1.ConfigMap).Labels["n"]}, nil }}); err != nil {
			return err
		}
		factory.Start(ctx.Done())
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced, registration.HasSynced) {
			return fmt.Errorf("did not sync")
		}
		_, answer := sent.last("WATCH")
		if _, err := maps.Create(ctx, configMap("later"), options()); err != nil {
			return err
		}
		if _, err := maps.Patch(ctx, "later", types.MergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{}); err != nil {
			return err
		}
		if err := all(notes.expect(ctx, "update later"), maps.Delete(ctx, "later", metav1.DeleteOptions{}), notes.expect(ctx, "delete later")); err != nil {
			return err
		}
		one, err := lister.List(labels.SelectorFromSet(labels.Set{"n": "1"}))
		if err != nil {
			return err
		}
		indexed, err := informer.GetIndexer().ByIndex("label", "2")
		if err != nil {
			return err
		}
		told := notes.all()
		sort.Strings(told[:min(4, len(told))])
		return all(same("it is a streamed list in protobuf", answer, "application/vnd.kubernetes.protobuf;stream=watch"), same("by label", len(one), 1), same("by index", len(indexed), 1),
			same("told", told, []string{"add first-0 true", "add first-1 true", "add first-2 true", "add kube-root-ca.crt true", "add later false", "update later", "delete later"}))
	})
	check("a handler is told everything again at each resync", func(ctx context.Context) error {
		factory := informers.NewSharedInformerFactoryWithOptions(typed, time.Second, informers.WithNamespace(ns),
			informers.WithTweakListOptions(func(how *metav1.ListOptions) { how.LabelSelector = "n=0" }))
		notes := &notebook{}
		if _, err := factory.Core().V1().ConfigMaps().Informer().AddEventHandlerWithResyncPeriod(notes.handler(), time.Second); err != nil {
			return err
		}
		factory.Start(ctx.Done())
		return all(notes.expect(ctx, "add first-0 true"), notes.expect(ctx, "resync first-0"), same("others", notes.has("add first-1 true"), false))
	})
	check("informers of several kinds from one factory, all in step", func(ctx context.Context) error {
		factory := informers.NewSharedInformerFactory(typed, 0)
		factory.Core().V1().Pods().Informer()
		factory.Core().V1().Nodes().Informer()
		factory.Core().V1().Services().Informer()
		factory.Core().V1().Namespaces().Informer()
		factory.Core().V1().Secrets().Informer()
		factory.Core().V1().ServiceAccounts().Informer()
		factory.Apps().V1().Deployments().Informer()
		factory.Apps().V1().ReplicaSets().Informer()
		factory.Discovery().V1().EndpointSlices().Informer()
		factory.Coordination().V1().Leases().Informer()
		factory.Start(ctx.Done())
		for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
			if !synced {
				return fmt.Errorf("%v did not sync", kind)
			}
		}
		_, err := factory.Core().V1().Namespaces().Lister().Get(ns)
		return err
	})
	check("a dynamic informer follows a kind it knows by name alone", func(ctx context.Context) error {
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(untyped, 0, ns, nil)
		informer := factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
		notes := &notebook{}
		if _, err := informer.Informer().AddEventHandler(notes.handler()); err != nil {
			return err
		}
		factory.Start(ctx.Done())
		if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
			return fmt.Errorf("did not sync")
		}
		object, err := informer.Lister().ByNamespace(ns).Get("first-1")
		if err != nil {
			return err
		}
		kind := object.(*unstructured.Unstructured).GroupVersionKind().Kind
		if _, err := maps.Create(ctx, configMap("dynamic"), options()); err != nil {
			return err
		}
		return all(same("kind", kind, "ConfigMap"), notes.expect(ctx, "add dynamic false"), maps.Delete(ctx, "dynamic", metav1.DeleteOptions{}), notes.expect(ctx, "delete dynamic"))
	})
}

// checkRestart has the server stopped and started under informers and watchers.
func checkRestart(ns string) {
	maps := typed.CoreV1().ConfigMaps(ns)
	living, end := context.WithCancel(context.Background())
	defer end()
	factory := informers.NewSharedInformerFactoryWithOptions(typed, 0, informers.WithNamespace(ns))
	informer := factory.Core().V1().ConfigMaps().Informer()
	notes := &notebook{}
	var watchErrors atomic.Int32
	_ = informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) { watchErrors.Add(1) })
	_, _ = informer.AddEventHandler(notes.handler())
	var retrying *watchtools.RetryWatcher
	var before string

	check("before the server goes: an informer in step, a watcher that retries", func(ctx context.Context) error {
		for _, name := range []string{"stays", "goes"} {
			if _, err := maps.Create(ctx, configMap(name), options()); err != nil {
				return err
			}
		}
		factory.Start(living.Done())
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return fmt.Errorf("did not sync")
		}
		list, err := maps.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		before = list.ResourceVersion
		retrying, err = watchtools.NewRetryWatcherWithContext(living, before, &cache.ListWatch{
			WatchFuncWithContext: func(ctx context.Context, how metav1.ListOptions) (watch.Interface, error) {
				return maps.Watch(ctx, how)
			}})
		if err != nil {
			return err
		}
		_, err = maps.Patch(ctx, "stays", types.MergePatchType, []byte(`{"data":{"a":"before"}}`), metav1.PatchOptions{})
		return all(err, notes.expect(ctx, "update stays"))
	})
	check("the server goes away: reads fail, and the informer keeps what it has", func(ctx context.Context) error {
		if err := ask("stop"); err != nil {
			return err
		}
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		_, err := maps.Get(short, "stays", metav1.GetOptions{})
		_, kept, _ := informer.GetStore().GetByKey(ns + "/stays")
		return all(same("the read failed", err != nil, true), same("kept", kept, true), same("handlers heard of no deletion", notes.has("delete stays"), false))
	})
	check("the server comes back: the informer goes on, misses nothing, and repeats no addition", func(ctx context.Context) error {
		if err := ask("start"); err != nil {
			return err
		}
		if _, err := maps.Create(ctx, configMap("new"), options()); err != nil {
			return err
		}
		if err := maps.Delete(ctx, "goes", metav1.DeleteOptions{}); err != nil {
			return err
		}
		if err := all(notes.expect(ctx, "add new false"), notes.expect(ctx, "delete goes")); err != nil {
			return err
		}
		count := 0
		for _, line := range notes.all() {
			if line == "add stays true" || line == "add stays false" {
				count++
			}
		}
		kept, found, _ := informer.GetStore().GetByKey(ns + "/stays")
		if !found {
			return fmt.Errorf("not kept")
		}
		return all(same("additions of what stayed", count, 1), same("its data", kept.(*corev1.ConfigMap).Data, map[string]string{"a": "before"}))
	})
	check("what was written before is there after, its resourceVersions go on from where they were", func(ctx context.Context) error {
		stays, err := maps.Get(ctx, "stays", metav1.GetOptions{})
		if err != nil {
			return err
		}
		made, err := maps.Get(ctx, "new", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return all(same("data", stays.Data["a"], "before"), same("newer", len(made.ResourceVersion) > len(before) || made.ResourceVersion > before, true))
	})
	check("a watcher that retries goes on from where it was, or is told that its past is gone", func(ctx context.Context) error {
		defer retrying.Stop()
		var seen []string
		for {
			select {
			case event, more := <-retrying.ResultChan():
				if !more {
					return fmt.Errorf("ended; seen %v", seen)
				}
				if event.Type == watch.Error {
					status, ok := event.Object.(*metav1.Status)
					if ok && status.Code == 410 {
						return nil
					}
					return fmt.Errorf("%+v", event.Object)
				}
				seen = append(seen, string(event.Type)+" "+event.Object.(*corev1.ConfigMap).Name)
				if len(seen) == 3 {
					return same("seen", seen, []string{"MODIFIED stays", "ADDED new", "DELETED goes"})
				}
			case <-ctx.Done():
				return fmt.Errorf("no more events; seen %v", seen)
			}
		}
	})
	check("an informer whose past has expired lists again, and tells only what differs", func(ctx context.Context) error {
		if err := ask("stop"); err != nil {
			return err
		}
		if err := ask("start"); err != nil {
			return err
		}
		list, err := maps.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if err := maps.Delete(ctx, "new", metav1.DeleteOptions{}); err != nil {
			return err
		}
		if err := forget(ctx, ns, list.ResourceVersion); err != nil {
			return err
		}
		if _, err := maps.Create(ctx, configMap("last"), options()); err != nil {
			return err
		}
		return all(notes.expect(ctx, "delete new"), notes.expect(ctx, "add last false"), same("stays was not deleted", notes.has("delete stays"), false))
	})
}
