// SPDX-License-Identifier: Apache-2.0

// Every kind that discovery offers: read through the dynamic client, through protobuf and as metadata, and written by each road,
// with an object of objects.yaml.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// A sample is an object of objects.yaml and where it lives.
type sample struct {
	object   *unstructured.Unstructured
	mapping  *meta.RESTMapping
	resource dynamic.ResourceInterface
}

func (s sample) gvk() schema.GroupVersionKind { return s.object.GroupVersionKind() }

// samples reads objects.yaml as kubectl reads a file of many documents.
func samples(ns string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(filepath.Join(directory, "objects.yaml"))
	if err != nil {
		return nil, err
	}
	text = bytes.ReplaceAll(text, []byte("$NAMESPACE"), []byte(ns))
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var found []*unstructured.Unstructured
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, err
		}
		found = append(found, object)
	}
}

func locate(object *unstructured.Unstructured, ns string) (sample, error) {
	gvk := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return sample{}, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return sample{object, mapping, untyped.Resource(mapping.Resource)}, nil
	}
	object.SetNamespace(ns)
	return sample{object, mapping, untyped.Resource(mapping.Resource).Namespace(ns)}, nil
}

// protobuf makes a client that sends and accepts nothing but protobuf, for any kind that client-go's scheme knows.
func protobuf(gv schema.GroupVersion) (*rest.RESTClient, error) {
	only := rest.CopyConfig(config)
	only.GroupVersion = &gv
	only.APIPath = "/apis"
	if gv.Group == "" {
		only.APIPath = "/api"
	}
	only.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	only.ContentType = runtime.ContentTypeProtobuf
	only.AcceptContentTypes = runtime.ContentTypeProtobuf
	return rest.RESTClientFor(only)
}

func checkKinds(ns string) {
	offered, err := resources(disco)
	if err != nil {
		fmt.Printf("not ok - go: discovery: %v\n", err)
		return
	}
	var listable []schema.GroupVersionResource
	for gvr, resource := range offered {
		if slices.Contains(resource.Verbs, "list") {
			listable = append(listable, gvr)
		}
	}
	sort.Slice(listable, func(a, b int) bool { return listable[a].String() < listable[b].String() })
	for _, gvr := range listable {
		checkReading(gvr, offered[gvr])
	}

	objects, err := samples(ns)
	if err != nil {
		fmt.Printf("not ok - go: objects.yaml: %v\n", err)
		return
	}
	check("objects.yaml has an object of every kind that can be created and read", func(ctx context.Context) error {
		kinds := map[string]bool{}
		for _, object := range objects {
			kinds[object.GroupVersionKind().String()] = true
		}
		var missing []string
		for _, gvr := range listable {
			gvk := gvr.GroupVersion().WithKind(offered[gvr].Kind)
			if slices.Contains(offered[gvr].Verbs, "create") && !kinds[gvk.String()] {
				missing = append(missing, gvk.String())
			}
		}
		return same("missing", missing, []string(nil))
	})
	for _, object := range objects {
		gvk := object.GroupVersionKind()
		name := strings.TrimPrefix(gvk.Group+"/"+gvk.Version+" "+gvk.Kind, "/")
		located, err := locate(object, ns)
		if err != nil {
			check(name+" is served", func(context.Context) error { return err })
			continue
		}
		if scheme.Scheme.Recognizes(gvk) {
			check(name+": created in protobuf and in JSON, it becomes the same", located.createBothWays)
		}
		check(name+": applied by the server, and applied again without a change", located.apply)
		if scheme.Scheme.Recognizes(gvk) {
			check(name+": read in protobuf and in JSON, it is the same", located.readBothWays)
		}
		check(name+": three kinds of patch, and a watch that sees them", located.patch)
		check(name+": updated, and refused with a resourceVersion of the past", located.update)
		check(name+": a deletion is a deletion", located.remove)
	}
}

func checkReading(gvr schema.GroupVersionResource, resource metav1.APIResource) {
	name := strings.TrimPrefix(gvr.Group+"/"+gvr.Version+" "+gvr.Resource, "/")
	gvk := gvr.GroupVersion().WithKind(resource.Kind)
	check(name+": a list by the dynamic client, by protobuf, of metadata and as a table agree", func(ctx context.Context) error {
		return retried(func() error { return sameLists(ctx, gvr, gvk) })
	})
	if !slices.Contains(resource.Verbs, "watch") {
		return
	}
	check(name+": a watch that begins with what there is says where that ends", func(ctx context.Context) error {
		yes := true
		watcher, err := untyped.Resource(gvr).Watch(ctx, metav1.ListOptions{
			SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
		if err != nil {
			return err
		}
		defer watcher.Stop()
		for event := range watcher.ResultChan() {
			object, err := meta.Accessor(event.Object)
			if err != nil {
				return fmt.Errorf("%s %v", event.Type, event.Object)
			}
			if kind := event.Object.GetObjectKind().GroupVersionKind(); kind != gvk {
				return fmt.Errorf("an event of %v", kind)
			}
			if event.Type == watch.Bookmark {
				return all(same("annotation", object.GetAnnotations()[metav1.InitialEventsAnnotationKey], "true"),
					matches("resourceVersion", object.GetResourceVersion(), `^[1-9]\d*$`))
			}
		}
		return fmt.Errorf("the watch ended before a bookmark came")
	})
}

// retried lets something that compares two moments try again where the moments differ.
func retried(try func() error) error {
	var err error
	for n := 0; n < 5; n++ {
		if err = try(); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

func sameLists(ctx context.Context, gvr schema.GroupVersionResource, gvk schema.GroupVersionKind) error {
	list, err := untyped.Resource(gvr).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if err := same("kind of the list", list.GroupVersionKind(), gvr.GroupVersion().WithKind(gvk.Kind+"List")); err != nil {
		return err
	}
	names := func(list runtime.Object) (found []string) {
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			object, err := meta.Accessor(item)
			if err == nil {
				found = append(found, object.GetNamespace()+"/"+object.GetName()+" "+object.GetResourceVersion())
			}
			return err
		})
		return found
	}
	want := names(list)
	metadataOnly, err := partial.Resource(gvr).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("as metadata: %w", err)
	}
	if err := same("metadata", names(metadataOnly), want); err != nil {
		return err
	}
	client, err := protobuf(gvr.GroupVersion())
	if err != nil {
		return err
	}
	var contentType string
	table := &metav1.Table{}
	text, err := client.Get().Resource(gvr.Resource).SetHeader("Accept", tableAccept).Do(ctx).ContentType(&contentType).Raw()
	if err == nil {
		err = json.Unmarshal(text, table)
	}
	if err != nil {
		return fmt.Errorf("as a table: %w", err)
	}
	if err := all(same("table's content type", contentType, "application/json"), same("table's kind", table.Kind, "Table"),
		same("rows", len(table.Rows), len(want)), same("there are columns", len(table.ColumnDefinitions) > 0, true)); err != nil {
		return err
	}
	for _, row := range table.Rows {
		if len(row.Cells) != len(table.ColumnDefinitions) {
			return fmt.Errorf("a row of %d cells under %d columns", len(row.Cells), len(table.ColumnDefinitions))
		}
	}
	if !scheme.Scheme.Recognizes(gvk) {
		return nil
	}
	into, err := scheme.Scheme.New(gvr.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return err
	}
	if err := client.Get().Resource(gvr.Resource).Do(ctx).ContentType(&contentType).Into(into); err != nil {
		return fmt.Errorf("in protobuf: %w", err)
	}
	return all(same("content type", contentType, runtime.ContentTypeProtobuf), same("in protobuf", names(into), want))
}

// typed gives the object as the Go type of its kind.
func (s sample) typed(from *unstructured.Unstructured) (runtime.Object, error) {
	into, err := scheme.Scheme.New(s.gvk())
	if err != nil {
		return nil, err
	}
	return into, runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into)
}

func (s sample) createBothWays(ctx context.Context) error {
	inJSON, err := s.resource.Create(ctx, s.object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: "Strict"})
	if err != nil {
		return fmt.Errorf("in JSON: %w", err)
	}
	body, err := s.typed(s.object)
	if err != nil {
		return err
	}
	client, err := protobuf(s.gvk().GroupVersion())
	if err != nil {
		return err
	}
	into, _ := scheme.Scheme.New(s.gvk())
	request := client.Post().Resource(s.mapping.Resource.Resource).Param("dryRun", "All").Body(body)
	if s.object.GetNamespace() != "" {
		request.Namespace(s.object.GetNamespace())
	}
	if err := request.Do(ctx).Into(into); err != nil {
		return fmt.Errorf("in protobuf: %w", err)
	}
	want, err := s.typed(inJSON)
	if err != nil {
		return err
	}
	var texts []string
	for _, object := range []runtime.Object{want, into} { // what differs between two creations
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		accessor, _ := meta.Accessor(object)
		created := accessor.GetCreationTimestamp()
		if accessor.GetUID() == "" || created.IsZero() || accessor.GetResourceVersion() != "" {
			return fmt.Errorf("a dry run gives an object a uid and a time, and no resourceVersion: %+v", accessor)
		}
		uid := string(accessor.GetUID())
		accessor.SetCreationTimestamp(metav1.Time{})
		accessor.SetManagedFields(nil)
		if volume, is := object.(*corev1.PersistentVolume); is { // the second in which it was made
			volume.Status.LastPhaseTransitionTime = nil
		}
		text, err := json.Marshal(object)
		if err != nil {
			return err
		}
		texts = append(texts, strings.ReplaceAll(string(text), uid, "UID")) // a Job's selector has it, too
	}
	if texts[0] != texts[1] {
		return fmt.Errorf("in JSON %s\nin protobuf %s", texts[0], texts[1])
	}
	if _, err := s.resource.Get(ctx, s.object.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("after a dry run: %v", err)
	}
	return nil
}

func (s sample) apply(ctx context.Context) error {
	how := metav1.ApplyOptions{FieldManager: "clients-apply", Force: true}
	applied, err := s.resource.Apply(ctx, s.object.GetName(), s.object, how)
	if err != nil {
		return err
	}
	if applied.GroupVersionKind() != s.gvk() || applied.GetName() != s.object.GetName() || applied.GetUID() == "" {
		return fmt.Errorf("the answer is %v %q, uid %q", applied.GroupVersionKind(), applied.GetName(), applied.GetUID())
	}
	var manager *metav1.ManagedFieldsEntry
	for _, entry := range applied.GetManagedFields() {
		if entry.Manager == "clients-apply" {
			manager = &entry
		}
	}
	if manager == nil || manager.Operation != metav1.ManagedFieldsOperationApply || manager.APIVersion != s.object.GetAPIVersion() || manager.FieldsType != "FieldsV1" {
		return fmt.Errorf("managedFields: %+v", applied.GetManagedFields())
	}
	return retried(func() error { // a controller may have written in between
		before, err := s.resource.Get(ctx, s.object.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		again, err := s.resource.Apply(ctx, s.object.GetName(), s.object, how)
		if err != nil {
			return err
		}
		return same("resourceVersion after the second apply", again.GetResourceVersion(), before.GetResourceVersion())
	})
}

func (s sample) readBothWays(ctx context.Context) error {
	return retried(func() error {
		inJSON, err := s.resource.Get(ctx, s.object.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		want, err := s.typed(inJSON)
		if err != nil {
			return err
		}
		client, err := protobuf(s.gvk().GroupVersion())
		if err != nil {
			return err
		}
		got, _ := scheme.Scheme.New(s.gvk())
		var contentType string
		request := client.Get().Resource(s.mapping.Resource.Resource).Name(s.object.GetName())
		if s.object.GetNamespace() != "" {
			request.Namespace(s.object.GetNamespace())
		}
		if err := request.Do(ctx).ContentType(&contentType).Into(got); err != nil {
			return err
		}
		want.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		got.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		if !equality.Semantic.DeepEqual(got, want) {
			return fmt.Errorf("in protobuf %+v\nin JSON %+v", got, want)
		}
		return same("content type", contentType, runtime.ContentTypeProtobuf)
	})
}

func (s sample) patch(ctx context.Context) error {
	now, err := s.resource.Get(ctx, s.object.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	watcher, err := s.resource.Watch(ctx, metav1.ListOptions{
		ResourceVersion: now.GetResourceVersion(), FieldSelector: "metadata.name=" + s.object.GetName()})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	patches := []struct {
		kind types.PatchType
		text string
	}{
		{types.MergePatchType, `{"metadata":{"annotations":{"clients.example/a":"merge"}}}`},
		{types.StrategicMergePatchType, `{"metadata":{"annotations":{"clients.example/b":"strategic"}}}`},
		{types.JSONPatchType, `[{"op":"test","path":"/metadata/annotations/clients.example~1a","value":"merge"},
			{"op":"replace","path":"/metadata/annotations/clients.example~1a","value":"json"}]`},
	}
	var last *unstructured.Unstructured
	for _, patch := range patches {
		if last, err = s.resource.Patch(ctx, s.object.GetName(), patch.kind, []byte(patch.text), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("%s: %w", patch.kind, err)
		}
	}
	annotations := last.GetAnnotations()
	if err := same("annotations", annotations["clients.example/a"]+" "+annotations["clients.example/b"], "json strategic"); err != nil {
		return err
	}
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type != watch.Modified {
			return fmt.Errorf("event %s %+v", event.Type, event.Object)
		}
		if object.GetResourceVersion() == last.GetResourceVersion() {
			return nil
		}
	}
	return fmt.Errorf("the watch ended without the last patch")
}

func (s sample) update(ctx context.Context) error {
	old, err := s.resource.Get(ctx, s.object.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := retried(func() error {
		now, err := s.resource.Get(ctx, s.object.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		labels := now.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["clients.example/updated"] = "yes"
		now.SetLabels(labels)
		updated, err := s.resource.Update(ctx, now, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		return same("label", updated.GetLabels()["clients.example/updated"], "yes")
	}); err != nil {
		return err
	}
	old.SetAnnotations(map[string]string{"late": "yes"})
	_, err = s.resource.Update(ctx, old, metav1.UpdateOptions{})
	resource := s.mapping.Resource.GroupResource()
	return refused(err, apierrors.IsConflict, fmt.Sprintf(
		"Operation cannot be fulfilled on %s %q: the object has been modified; please apply your changes to the latest version and try again",
		resource, old.GetName()))
}

func (s sample) remove(ctx context.Context) error {
	background := metav1.DeletePropagationBackground
	if err := s.resource.Delete(ctx, s.object.GetName(), metav1.DeleteOptions{PropagationPolicy: &background, GracePeriodSeconds: pointer[int64](0)}); err != nil {
		return err
	}
	left, err := s.resource.Get(ctx, s.object.GetName(), metav1.GetOptions{})
	if err == nil && left.GetDeletionTimestamp() != nil {
		spec, _, _ := unstructured.NestedStringSlice(left.Object, "spec", "finalizers")
		if len(left.GetFinalizers())+len(spec) > 0 {
			return nil // somebody protects it, and will let it go
		}
	}
	gvr := s.mapping.Resource
	return refused(err, apierrors.IsNotFound, fmt.Sprintf("%s %q not found", gvr.GroupResource(), s.object.GetName()))
}
