// SPDX-License-Identifier: Apache-2.0

// A pod that runs: its log, commands in it, its eviction and its end.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/exec"
)

func checkPods(ns string) {
	pods := typed.CoreV1().Pods(ns)
	check("a pod runs: a watch until it is ready", func(ctx context.Context) error {
		made, err := pods.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "worker", Labels: map[string]string{"app": "worker"}},
			Spec: corev1.PodSpec{TerminationGracePeriodSeconds: pointer[int64](0), Containers: []corev1.Container{{Name: "main", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
				Command: []string{"sh", "-c", "echo one; echo two >&2; echo three; exec sleep 100000"}}}},
		}, options())
		if err != nil {
			return err
		}
		watcher, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=worker", ResourceVersion: made.ResourceVersion})
		if err != nil {
			return err
		}
		last, err := watchtools.UntilWithoutRetry(ctx, watcher, func(event watch.Event) (bool, error) {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				return false, apierrors.FromObject(event.Object)
			}
			for _, condition := range pod.Status.Conditions {
				if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
					return true, nil
				}
			}
			return false, nil
		})
		if err != nil {
			return err
		}
		status := last.Object.(*corev1.Pod).Status
		return all(same("phase", status.Phase, corev1.PodRunning), matches("podIP", status.PodIP, `^\d+\.\d+\.\d+\.\d+$`), same("quality of service", status.QOSClass, corev1.PodQOSBestEffort),
			same("started", *status.ContainerStatuses[0].Started, true))
	})
	log := func(ctx context.Context, how corev1.PodLogOptions) (string, error) {
		text, err := pods.GetLogs("worker", &how).DoRaw(ctx)
		return string(text), err
	}
	check("logs: all, the last line, with times, cut, and of a container that there is not", func(ctx context.Context) error {
		if err := until(ctx, "three lines", func() (bool, string) {
			text, err := log(ctx, corev1.PodLogOptions{})
			return len(strings.Fields(text)) == 3, fmt.Sprint(text, err)
		}); err != nil {
			return err
		}
		whole, err := log(ctx, corev1.PodLogOptions{Container: "main"})
		if err != nil {
			return err
		}
		last, err := log(ctx, corev1.PodLogOptions{TailLines: pointer[int64](1), Timestamps: true})
		if err != nil {
			return err
		}
		cut, err := log(ctx, corev1.PodLogOptions{LimitBytes: pointer[int64](5)})
		if err != nil {
			return err
		}
		other := pods.GetLogs("worker", &corev1.PodLogOptions{Container: "other"}).Do(ctx).Error()
		return all(same("lines", len(strings.Fields(whole)), 3), matches("last", last, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z \w+\n$`), same("cut", len(cut), 5),
			refused(other, apierrors.IsBadRequest, "container other is not valid for pod worker"))
	})
	check("a log that is followed ends with the client", func(ctx context.Context) error {
		following, stop := context.WithCancel(ctx)
		defer stop()
		stream, err := pods.GetLogs("worker", &corev1.PodLogOptions{Follow: true}).Stream(following)
		if err != nil {
			return err
		}
		defer stream.Close()
		text := make([]byte, len("one\ntwo\nthree\n"))
		if _, err := io.ReadFull(stream, text); err != nil {
			return err
		}
		stop()
		_, err = stream.Read(text)
		return same("ended", errors.Is(err, context.Canceled), true)
	})
	address := func(how *corev1.PodExecOptions) *url.URL {
		how.Container = "main"
		return typed.CoreV1().RESTClient().Post().Namespace(ns).Resource("pods").Name("worker").SubResource("exec").VersionedParams(how, scheme.ParameterCodec).URL()
	}
	run := func(ctx context.Context, executor func(*url.URL) (remotecommand.Executor, error), input string, tty bool, command ...string) (string, string, error) {
		to, err := executor(address(&corev1.PodExecOptions{Command: command, Stdin: input != "", Stdout: true, Stderr: !tty, TTY: tty}))
		if err != nil {
			return "", "", err
		}
		var out, errors bytes.Buffer
		streams := remotecommand.StreamOptions{Stdout: &out, Tty: tty}
		if !tty {
			streams.Stderr = &errors
		}
		if input != "" {
			streams.Stdin = strings.NewReader(input)
		}
		err = to.StreamWithContext(ctx, streams)
		return out.String(), errors.String(), err
	}
	kubectl := func(to *url.URL) (remotecommand.Executor, error) { // as kubectl: WebSocket, and SPDY where that is refused
		spdy, err := remotecommand.NewSPDYExecutor(config, "POST", to)
		if err != nil {
			return nil, err
		}
		websocket, err := remotecommand.NewWebSocketExecutor(config, "GET", to.String())
		if err != nil {
			return nil, err
		}
		return remotecommand.NewFallbackExecutor(websocket, spdy, func(err error) bool {
			return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
		})
	}
	check("exec as kubectl does: both outputs, standard input, an exit code, a terminal", func(ctx context.Context) error {
		out, errors, err := run(ctx, kubectl, "", false, "sh", "-c", "echo out; echo err >&2")
		if err != nil {
			return err
		}
		large := strings.Repeat("0123456789abcdef\n", 20000)
		echoed, _, err := run(ctx, kubectl, large, false, "cat")
		if err != nil {
			return err
		}
		_, _, failed := run(ctx, kubectl, "", false, "sh", "-c", "exit 7")
		code, ok := failed.(exec.ExitError)
		if !ok {
			return fmt.Errorf("want an exit code, got %v", failed)
		}
		terminal, _, err := run(ctx, kubectl, "", true, "sh", "-c", "tty; echo done")
		if err != nil {
			return err
		}
		return all(same("output", out, "out\n"), same("error output", errors, "err\n"), same("input comes back", echoed == large, true), same("exit code", code.ExitStatus(), 7),
			matches("terminal", terminal, `^/dev/(pts/\d+|console)\r\ndone\r\n$`))
	})
	check("exec of what there is not", func(ctx context.Context) error {
		_, _, err := run(ctx, kubectl, "", false, "/no/such/program")
		return same("an error", err != nil, true)
	})
	check("a pod's spec may not change, but for its image", func(ctx context.Context) error {
		pod, err := pods.Get(ctx, "worker", metav1.GetOptions{})
		if err != nil {
			return err
		}
		pod.Spec.Containers[0].Command = []string{"other"}
		_, err = pods.Update(ctx, pod, metav1.UpdateOptions{})
		return all(causes(err, "spec: FieldValueForbidden"), matches("words", fmt.Sprint(err), `Pod "worker" is invalid: spec: Forbidden: pod updates may not change fields other than `))
	})
	check("a pod is found by its node and its phase", func(ctx context.Context) error {
		pod, err := pods.Get(ctx, "worker", metav1.GetOptions{})
		if err != nil {
			return err
		}
		here, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + pod.Spec.NodeName + ",status.phase=Running"})
		if err != nil {
			return err
		}
		away, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!=" + pod.Spec.NodeName})
		if err != nil {
			return err
		}
		return all(same("here", len(here.Items), 1), same("away", len(away.Items), 0))
	})
	check("an eviction: a dry run leaves the pod, a real one ends it", func(ctx context.Context) error {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "worker", Namespace: ns}}
		dry := *eviction
		dry.DeleteOptions = &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
		if err := pods.EvictV1(ctx, &dry); err != nil {
			return fmt.Errorf("dry run: %w", err)
		}
		if err := pods.EvictV1(ctx, eviction); err != nil {
			return err
		}
		return until(ctx, "the pod is gone", func() (bool, string) {
			_, err := pods.Get(ctx, "worker", metav1.GetOptions{})
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	})
}
