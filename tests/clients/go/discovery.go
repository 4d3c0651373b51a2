// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// resources is what discovery offers, subresources included.
func resources(client discovery.DiscoveryInterface) (map[schema.GroupVersionResource]metav1.APIResource, error) {
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return nil, err
	}
	found := map[schema.GroupVersionResource]metav1.APIResource{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			if resource.Group == "" {
				resource.Group = gv.Group
			}
			if resource.Version == "" {
				resource.Version = gv.Version
			}
			sort.Strings(resource.Verbs)
			found[gv.WithResource(resource.Name)] = resource
		}
	}
	return found, nil
}

func checkDiscovery() {
	check("the server's version is a v1.36 that names itself", func(ctx context.Context) error {
		version, err := disco.ServerVersion()
		if err != nil {
			return err
		}
		return all(same("major", version.Major, "1"), same("minor", version.Minor, "36"), matches("gitVersion", version.GitVersion, `^v1\.36\.\d+\+coracle`))
	})
	check("aggregated discovery says of every resource what legacy discovery says", func(ctx context.Context) error {
		aggregated, err := resources(disco)
		if err != nil {
			return err
		}
		legacy := discovery.NewDiscoveryClient(disco.RESTClient())
		legacy.UseLegacyDiscovery = true
		other, err := resources(legacy)
		if err != nil {
			return err
		}
		for gvr, resource := range other {
			resource.StorageVersionHash = "" // the legacy form alone carries it, and the aggregated alone a subresource's singular
			if strings.Contains(resource.Name, "/") {
				resource.SingularName = aggregated[gvr].SingularName
			}
			if got := aggregated[gvr]; !reflect.DeepEqual(got, resource) {
				return fmt.Errorf("%v: aggregated %+v, legacy %+v", gvr, got, resource)
			}
		}
		return same("number of resources", len(aggregated), len(other))
	})
	check("every kind of a stable version that this client-go knows is offered", func(ctx context.Context) error {
		offered, err := resources(disco)
		if err != nil {
			return err
		}
		kinds := map[schema.GroupVersionKind]bool{}
		for gvr, resource := range offered {
			if !strings.Contains(resource.Name, "/") {
				kinds[gvr.GroupVersion().WithKind(resource.Kind)] = true
			}
		}
		object := reflect.TypeOf((*metav1.Object)(nil)).Elem()
		var missing []string
		for gvk, kind := range scheme.Scheme.AllKnownTypes() {
			if strings.Contains(gvk.Version, "beta") || strings.Contains(gvk.Version, "alpha") || !reflect.PointerTo(kind).Implements(object) {
				continue
			}
			if scheme.Scheme.Recognizes(gvk.GroupVersion().WithKind(gvk.Kind+"List")) && !kinds[gvk] && gvk.Group != "imagepolicy.k8s.io" {
				missing = append(missing, gvk.String())
			}
		}
		sort.Strings(missing)
		return same("missing kinds", missing, []string(nil))
	})
	check("preferred resources: one version of each group, without an error", func(ctx context.Context) error {
		lists, err := disco.ServerPreferredResources()
		if err != nil {
			return err
		}
		version := map[string]string{}
		for _, list := range lists {
			if len(list.APIResources) == 0 { // of a version that is not preferred
				continue
			}
			gv, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil {
				return err
			}
			if old, found := version[gv.Group]; found {
				return fmt.Errorf("group %q has %s and %s", gv.Group, old, gv.Version)
			}
			version[gv.Group] = gv.Version
		}
		return all(same("apps", version["apps"], "v1"), same("autoscaling", version["autoscaling"], "v2"))
	})
	check("the REST mapper finds kinds, plurals, scopes and short names", func(ctx context.Context) error {
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
		if err != nil {
			return err
		}
		node, err := mapper.RESTMapping(schema.GroupKind{Kind: "Node"}, "v1")
		if err != nil {
			return err
		}
		expander := restmapper.NewShortcutExpander(mapper, memory.NewMemCacheClient(disco), nil)
		for short, want := range map[string]string{"cm": "configmaps", "deploy": "deployments", "sa": "serviceaccounts", "po": "pods", "svc": "services"} {
			gvr, err := expander.ResourceFor(schema.GroupVersionResource{Resource: short})
			if err != nil || gvr.Resource != want {
				return fmt.Errorf("%s: %v, %v", short, gvr, err)
			}
		}
		kind, err := mapper.KindFor(schema.GroupVersionResource{Resource: "secrets"})
		if err != nil {
			return err
		}
		return all(same("deployments", mapping.Resource.Resource+" "+string(mapping.Scope.Name()), "deployments namespace"),
			same("nodes", node.Resource.Resource+" "+string(node.Scope.Name()), "nodes root"), same("secrets", kind.Kind, "Secret"))
	})
	check("discovery is kept by its ETag: asked again, 304", func(ctx context.Context) error {
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			return err
		}
		get := func(path, etag string) (*http.Response, string, error) {
			request, _ := http.NewRequestWithContext(ctx, "GET", config.Host+path, nil)
			request.Header.Set("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json")
			if etag != "" {
				request.Header.Set("If-None-Match", etag)
			}
			response, err := client.Do(request)
			if err != nil {
				return nil, "", err
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			return response, string(body), err
		}
		for _, path := range []string{"/api", "/apis"} {
			first, _, err := get(path, "")
			if err != nil {
				return err
			}
			etag := first.Header.Get("ETag")
			second, body, err := get(path, etag)
			if err != nil {
				return err
			}
			if err := all(matches("ETag", etag, `(?i)^"[0-9a-f]{128}"$`), same("status", second.StatusCode, 304), same("body", body, ""),
				same("content type", first.Header.Get("Content-Type"), "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		return nil
	})
	check("OpenAPI v3 describes every group version that discovery offers", func(ctx context.Context) error {
		paths, err := disco.OpenAPIV3().Paths()
		if err != nil {
			return err
		}
		offered, err := resources(disco)
		if err != nil {
			return err
		}
		for gvr := range offered {
			path := "apis/" + gvr.Group + "/" + gvr.Version
			if gvr.Group == "" {
				path = "api/" + gvr.Version
			}
			if paths[path] == nil {
				return fmt.Errorf("no document for %s", path)
			}
		}
		return appsSchema(paths["apis/apps/v1"])
	})
	check("OpenAPI v2 comes as protobuf", func(ctx context.Context) error {
		document, err := disco.OpenAPISchema()
		if err != nil {
			return err
		}
		for _, definition := range document.GetDefinitions().GetAdditionalProperties() {
			if definition.GetName() == "io.k8s.api.core.v1.ConfigMap" {
				return nil
			}
		}
		return fmt.Errorf("no definition of ConfigMap")
	})
	check("/livez and /readyz are ok", func(ctx context.Context) error {
		for _, path := range []string{"/livez", "/readyz", "/healthz"} {
			body, err := disco.RESTClient().Get().AbsPath(path).DoRaw(ctx)
			if err != nil || string(body) != "ok" {
				return fmt.Errorf("%s: %q, %v", path, body, err)
			}
		}
		return nil
	})
	check("a path that there is not is no resource", func(ctx context.Context) error {
		_, err := disco.RESTClient().Get().AbsPath("/apis/nothing.example/v1/things").DoRaw(ctx)
		return same("error", fmt.Sprint(err), "the server could not find the requested resource")
	})
}

func appsSchema(group openapi.GroupVersion) error {
	text, err := group.Schema("application/json")
	if err != nil {
		return err
	}
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Kinds []metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
			}
		}
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return err
	}
	want := []metav1.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "Deployment"}}
	return same("kinds of the schema", document.Components.Schemas["io.k8s.api.apps.v1.Deployment"].Kinds, want)
}
