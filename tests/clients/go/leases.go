// SPDX-License-Identifier: Apache-2.0

// Leader election by a Lease, and events: what controllers have running beside their work.
package main

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

func checkLeases(ns string) {
	check("leader election: one of two leads, the other follows when it lets go", func(ctx context.Context) error {
		leads := make(chan string, 4)
		candidate := func(ctx context.Context, name string) error {
			elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				Lock:          &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: ns, Name: "leader"}, Client: typed.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: name}},
				LeaseDuration: time.Minute, RenewDeadline: 40 * time.Second, RetryPeriod: 200 * time.Millisecond, ReleaseOnCancel: true, Name: name,
				Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { leads <- name }, OnStoppedLeading: func() {}},
			})
			if err == nil {
				go elector.Run(ctx)
			}
			return err
		}
		next := func(want string) error {
			select {
			case got := <-leads:
				return same("leader", got, want)
			case <-ctx.Done():
				return fmt.Errorf("%s did not become leader", want)
			}
		}
		first, letGo := context.WithCancel(ctx)
		defer letGo()
		if err := all(candidate(first, "one"), next("one"), candidate(ctx, "two")); err != nil {
			return err
		}
		var lease *coordinationv1.Lease
		if err := until(ctx, "it is renewed", func() (bool, string) {
			var err error
			lease, err = typed.CoordinationV1().Leases(ns).Get(ctx, "leader", metav1.GetOptions{})
			return err == nil && lease.Spec.RenewTime.After(lease.Spec.AcquireTime.Time), fmt.Sprint(lease, err)
		}); err != nil {
			return err
		}
		letGo() // a minute before the lease would end
		if err := all(same("holder", *lease.Spec.HolderIdentity, "one"), same("transitions", *lease.Spec.LeaseTransitions, int32(0)), same("duration", *lease.Spec.LeaseDurationSeconds, int32(60)),
			next("two")); err != nil {
			return err
		}
		lease, err := typed.CoordinationV1().Leases(ns).Get(ctx, "leader", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return all(same("holder", *lease.Spec.HolderIdentity, "two"), same("transitions", *lease.Spec.LeaseTransitions > 0, true))
	})
}

func checkEvents(ns string) {
	list := func(ctx context.Context, reason string) (found []corev1.Event, err error) {
		events, err := typed.CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason + ",involvedObject.kind=ConfigMap,involvedObject.name=subject"})
		if err == nil {
			found = events.Items
		}
		return found, err
	}
	var subject *corev1.ConfigMap
	check("the events recorder: what is told again is counted, by a patch", func(ctx context.Context) error {
		var err error
		if subject, err = typed.CoreV1().ConfigMaps(ns).Create(ctx, configMap("subject"), options()); err != nil {
			return err
		}
		broadcaster := record.NewBroadcaster(record.WithContext(ctx))
		defer broadcaster.Shutdown()
		broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: typed.CoreV1().Events(ns)})
		recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "clients"})
		for n := 0; n < 3; n++ {
			recorder.Eventf(subject, corev1.EventTypeWarning, "Recorded", "told %s", "often")
		}
		return until(ctx, "one event, three times", func() (bool, string) {
			found, err := list(ctx, "Recorded")
			return err == nil && len(found) == 1 && found[0].Count == 3 && found[0].Message == "told often" && found[0].Type == "Warning" && found[0].Source.Component == "clients" && found[0].InvolvedObject.UID == subject.UID, fmt.Sprintf("%+v %v", found, err)
		})
	})
	check("the newer recorder, of events.k8s.io: a series, which the core group shows too", func(ctx context.Context) error {
		broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: typed.EventsV1()})
		defer broadcaster.Shutdown()
		stop := make(chan struct{})
		defer close(stop)
		broadcaster.StartRecordingToSink(stop)
		recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/clients")
		for n := 0; n < 3; n++ {
			recorder.Eventf(subject, nil, corev1.EventTypeNormal, "Noted", "Noting", "noted %s", "well")
		}
		return until(ctx, "an event with a series", func() (bool, string) {
			found, err := typed.EventsV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "reason=Noted"})
			if err != nil || len(found.Items) != 1 {
				return false, fmt.Sprint(found, err)
			}
			event := found.Items[0]
			older, err := list(ctx, "Noted")
			if err != nil || len(older) != 1 {
				return false, fmt.Sprint(older, err)
			}
			return event.Note == "noted well" && event.Action == "Noting" && event.Regarding.Name == "subject" && event.ReportingController == "example.com/clients" && event.Series != nil && event.Series.Count >= 2 &&
				older[0].Message == event.Note && older[0].InvolvedObject.UID == subject.UID && older[0].Series != nil, fmt.Sprintf("%+v %+v", event, older[0])
		})
	})
	check("what an event of events.k8s.io needs", func(ctx context.Context) error {
		poor := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "poor"}, Regarding: corev1.ObjectReference{Namespace: ns}}
		_, timeless := typed.EventsV1().Events(ns).Create(ctx, poor, options())
		poor.EventTime = metav1.NowMicro()
		_, err := typed.EventsV1().Events(ns).Create(ctx, poor, options())
		return all(causes(timeless, "eventTime: FieldValueRequired", "type: FieldValueInvalid"),
			causes(err, "reportingController: FieldValueRequired", "reportingController: FieldValueInvalid", "reportingController: FieldValueInvalid",
				"reportingInstance: FieldValueRequired", "action: FieldValueRequired", "reason: FieldValueRequired", "type: FieldValueInvalid"))
	})
}
