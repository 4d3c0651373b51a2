// SPDX-License-Identifier: Apache-2.0

// Metadata alone: the metadata client and its informers, as the garbage collector and quota use them. And tables, as kubectl get does.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const tableAccept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"

func checkMetadata(ns string) {
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	check("the metadata client gets, lists, patches and deletes, and sees no data", func(ctx context.Context) error {
		object := configMap("big", "a", "1")
		object.Labels = map[string]string{"part": "metadata"}
		made, err := typed.CoreV1().ConfigMaps(ns).Create(ctx, object, options())
		if err != nil {
			return err
		}
		client := partial.Resource(gvr).Namespace(ns)
		got, err := client.Get(ctx, "big", metav1.GetOptions{})
		if err != nil {
			return err
		}
		list, err := client.List(ctx, metav1.ListOptions{LabelSelector: "part=metadata"})
		if err != nil {
			return err
		}
		patched, err := client.Patch(ctx, "big", types.MergePatchType, []byte(`{"metadata":{"labels":{"part":"other"}}}`), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		return all(same("uid", got.UID, made.UID), same("managers", len(got.ManagedFields), 1),
			same("items", len(list.Items), 1), matches("list's resourceVersion", list.ResourceVersion, `^\d+$`), same("label", patched.Labels["part"], "other"), client.Delete(ctx, "big", metav1.DeleteOptions{}))
	})
	check("a metadata informer follows a kind", func(ctx context.Context) error {
		factory := metadatainformer.NewFilteredSharedInformerFactory(partial, 0, ns, nil)
		informer := factory.ForResource(gvr)
		seen := make(chan string, 100)
		_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { seen <- "added " + object.(*metav1.PartialObjectMetadata).Name },
			UpdateFunc: func(_, object any) { seen <- "updated " + object.(*metav1.PartialObjectMetadata).Name },
			DeleteFunc: func(object any) { seen <- "deleted " + object.(*metav1.PartialObjectMetadata).Name },
		})
		if err != nil {
			return err
		}
		factory.Start(ctx.Done())
		if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
			return fmt.Errorf("did not sync")
		}
		maps := typed.CoreV1().ConfigMaps(ns)
		if _, err := maps.Create(ctx, configMap("followed"), options()); err != nil {
			return err
		}
		if _, err := maps.Patch(ctx, "followed", types.MergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{}); err != nil {
			return err
		}
		if err := maps.Delete(ctx, "followed", metav1.DeleteOptions{}); err != nil {
			return err
		}
		for _, want := range []string{"added kube-root-ca.crt", "added followed", "updated followed", "deleted followed"} {
			select {
			case got := <-seen:
				if got != want {
					return fmt.Errorf("want %s, got %s", want, got)
				}
			case <-ctx.Done():
				return fmt.Errorf("no %s in time", want)
			}
		}
		return nil
	})
	check("metadata in protobuf: the envelope says PartialObjectMetadataList, and its kind of answer", func(ctx context.Context) error {
		var contentType string
		raw, err := typed.CoreV1().RESTClient().Get().Resource("configmaps").Namespace(ns).
			SetHeader("Accept", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").Do(ctx).ContentType(&contentType).Raw()
		if err != nil {
			return err
		}
		return all(same("content type", contentType, "application/vnd.kubernetes.protobuf"), matches("envelope", string(raw[:40]), "^k8s\x00\n.\n\x0emeta.k8s.io/v1"))
	})
}

func checkTables(ns string) {
	table := func(ctx context.Context, request *rest.Request) (*metav1.Table, error) {
		text, err := request.SetHeader("Accept", tableAccept).DoRaw(ctx)
		if err != nil {
			return nil, err
		}
		found := &metav1.Table{}
		return found, json.Unmarshal(text, found)
	}
	core := typed.CoreV1().RESTClient()
	check("a table of ConfigMaps: columns, cells, and each row's metadata", func(ctx context.Context) error {
		if _, err := typed.CoreV1().ConfigMaps(ns).Create(ctx, configMap("tabled", "a", "1", "b", "2"), options()); err != nil {
			return err
		}
		got, err := table(ctx, core.Get().Namespace(ns).Resource("configmaps").Name("tabled"))
		if err != nil {
			return err
		}
		var columns []string
		for _, column := range got.ColumnDefinitions {
			columns = append(columns, column.Name+":"+column.Type+":"+column.Format)
		}
		row := got.Rows[0]
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(row.Object.Raw, &object); err != nil {
			return err
		}
		return all(same("columns", columns, []string{"Name:string:name", "Data:string:", "Age:string:"}), same("name and data", row.Cells[:2], []any{"tabled", float64(2)}), matches("age", fmt.Sprint(row.Cells[2]), `^\d+s$`),
			same("row's kind", object.Kind+" "+object.APIVersion, "PartialObjectMetadata meta.k8s.io/v1"), same("row's name", object.Name, "tabled"))
	})
	check("includeObject: nothing, the object, and nonsense", func(ctx context.Context) error {
		none, err := table(ctx, core.Get().Namespace(ns).Resource("configmaps").Param("includeObject", "None"))
		if err != nil {
			return err
		}
		object, err := table(ctx, core.Get().Namespace(ns).Resource("configmaps").Name("tabled").Param("includeObject", "Object"))
		if err != nil {
			return err
		}
		_, bad := table(ctx, core.Get().Namespace(ns).Resource("configmaps").Param("includeObject", "Half"))
		return all(same("none", len(none.Rows[0].Object.Raw), 0), matches("object", string(object.Rows[0].Object.Raw), `"kind":"ConfigMap".*"data":\{"a":"1","b":"2"\}`), same("bad is refused", bad != nil, true))
	})
	check("a table for what has none is not acceptable", func(ctx context.Context) error {
		err := typed.AuthorizationV1().RESTClient().Post().Resource("selfsubjectaccessreviews").SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
			SetHeader("Content-Type", "application/json").Body([]byte(`{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}`)).Do(ctx).Error()
		return matches("error", fmt.Sprint(err), `only the following media types are accepted`)
	})
	check("a watched table: the columns come once, each event is a table", func(ctx context.Context) error {
		stream, err := core.Get().Namespace(ns).Resource("configmaps").Param("watch", "1").SetHeader("Accept", tableAccept).Timeout(10 * time.Second).Stream(ctx)
		if err != nil {
			return err
		}
		defer stream.Close()
		decoder := json.NewDecoder(stream)
		for n := 0; n < 2; n++ {
			var event struct {
				Type   string
				Object metav1.Table
			}
			if err := decoder.Decode(&event); err != nil {
				return err
			}
			columns := 0
			if n == 0 {
				columns = 3
			}
			if err := all(same("type", event.Type, "ADDED"), same("kind", event.Object.Kind, "Table"), same("columns", len(event.Object.ColumnDefinitions), columns), same("rows", len(event.Object.Rows), 1)); err != nil {
				return err
			}
		}
		return nil
	})
}
