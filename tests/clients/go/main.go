// SPDX-License-Identifier: Apache-2.0

// A program on client-go, unmodified: what controllers, kubectl's kin and installers do with it, against the server that the
// kubeconfig names. Arguments: KUBECONFIG DIRECTORY IMAGE; the directory holds objects.yaml, the image has a shell.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	config    *rest.Config
	typed     *kubernetes.Clientset
	untyped   *dynamic.DynamicClient
	partial   metadata.Interface
	disco     *discovery.DiscoveryClient
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	directory string
	image     string
	sent      contentTypes
)

// contentTypes remembers with which Content-Type each kind of request was last sent, and answered.
type contentTypes struct {
	sync.Mutex
	request, response map[string]string
}

type recorder struct{ next http.RoundTripper }

func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	method := request.Method
	if request.URL.Query().Has("watch") {
		method = "WATCH"
	}
	sent.Lock()
	defer sent.Unlock()
	sent.request[method] = request.Header.Get("Content-Type")
	if err == nil {
		sent.response[method] = response.Header.Get("Content-Type")
	}
	return response, err
}

func (c *contentTypes) last(method string) (string, string) {
	c.Lock()
	defer c.Unlock()
	return c.request[method], c.response[method]
}

func connect(kubeconfig string) error {
	var err error
	if config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return err
	}
	config.QPS, config.Burst = -1, 0
	config.UserAgent = "clients-test/1.0"
	sent.request, sent.response = map[string]string{}, map[string]string{}
	recorded := rest.CopyConfig(config)
	recorded.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorder{next} })
	if typed, err = kubernetes.NewForConfig(recorded); err != nil {
		return err
	}
	if untyped, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	if partial, err = metadata.NewForConfig(config); err != nil {
		return err
	}
	if disco, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		return err
	}
	mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))
	return nil
}

// namespace makes one for a group of checks, and waits for what every namespace gets.
func namespace(name string) string {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, err := typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, options())
	if err == nil {
		err = until(ctx, "the namespace has its service account and the authority's certificate", func() (bool, string) {
			_, account := typed.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
			_, authority := typed.CoreV1().ConfigMaps(name).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
			return account == nil && authority == nil, fmt.Sprint(account, authority)
		})
	}
	if err != nil {
		fmt.Printf("not ok - go: namespace %s: %v\n", name, err)
		os.Exit(1)
	}
	return name
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: clients KUBECONFIG DIRECTORY IMAGE")
		os.Exit(2)
	}
	directory, image = os.Args[2], os.Args[3]
	if err := connect(os.Args[1]); err != nil {
		fmt.Printf("not ok - go: clients from the kubeconfig: %v\n", err)
		os.Exit(1)
	}
	checkDiscovery()
	checkKinds(namespace("go-kinds"))
	checkTyped(namespace("go-typed"))
	checkErrors(namespace("go-errors"))
	checkLists(namespace("go-lists"))
	checkWatches(namespace("go-watches"))
	checkPatches(namespace("go-patches"))
	checkApply(namespace("go-apply"))
	checkScale(namespace("go-scale"))
	checkDeletion(namespace("go-deletion"))
	checkMetadata(namespace("go-metadata"))
	checkTables(namespace("go-tables"))
	checkAccess(namespace("go-access"))
	checkLeases(namespace("go-leases"))
	checkEvents(namespace("go-events"))
	checkPods(namespace("go-pods"))
	checkHelm(namespace("go-helm"))
	checkInformers(namespace("go-informers"))
	checkRestart(namespace("go-restart"))
}
