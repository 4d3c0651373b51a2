// SPDX-License-Identifier: Apache-2.0
// QueueSet: the queues and seats of one priority level: who runs, who waits and where, whose turn it is. Pure: time comes in as
// an argument, and nothing here sleeps or locks.
//   arrive ▸ the shortest queue of the flow's hand ▸ dispatch: the queue whose oldest request would be through first ▸ finish
// Each queue has a virtual time at which its next request begins. It moves by what a request is thought to take (seats times
// kServiceGuess) when one is dispatched, and is corrected by what it took when one is finished: a queue that had much waits while
// others catch up, and a wide or slow request is charged for what it is.
// Source: Kubernetes "API Priority and Fairness"; fair queuing for server requests, apiserver fairqueuing/queueset.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "runtime/base/clock.h"

namespace coracle::fairness {

constexpr std::chrono::duration<double> kServiceGuess{0.003};  // what a request is thought to take

struct QueueSettings {
  bool unlimited = false;  // an exempt level: everybody runs
  int queues = 0;          // 0: nobody waits
  int hand_size = 1;
  int length_limit = 50;  // of one queue
};

enum class Arrival { runs, waits, no_seats, queue_full };

// One request. Its owner keeps it where it is until it has run or given up.
struct Request {
  int seats = 1;
  bool running = false;

  // The queue set's own.
  int queue = -1;
  Request* next = nullptr;  // behind it in its queue
  double arrived = 0;       // virtual time
  SteadyTime began{};
};

class QueueSet {
 public:
  QueueSet(const QueueSettings& settings, int limit, SteadyTime now) : settings_(settings), limit_(limit), now_(now) { resize(); }

  // Those who wait keep their places; queues that are too many go when they are empty.
  void configure(const QueueSettings& settings, SteadyTime now);
  void set_limit(int seats, SteadyTime now);

  // After `waits`, dispatch() says when its turn has come: perhaps at once.
  Arrival arrive(Request& request, uint64_t flow, SteadyTime now);
  // Seats as many as may run now, and returns them.
  std::vector<Request*> dispatch(SteadyTime now);
  void finish(Request& request, SteadyTime now);   // of one that runs
  void give_up(Request& request, SteadyTime now);  // of one that waits

  int limit() const { return limit_; }
  int executing() const { return executing_; }
  int waiting() const { return waiting_; }
  int seats_in_use() const { return seats_in_use_; }
  int seats_waiting() const { return seats_waiting_; }
  bool idle() const { return executing_ == 0 && waiting_ == 0; }

 private:
  struct Queue {
    Request *first = nullptr, *last = nullptr;  // who waits
    int length = 0;
    int executing = 0, seats_in_use = 0, seats_waiting = 0;
    double next_begin = 0;  // virtual time
    bool active() const { return executing > 0 || length > 0; }
  };

  void pass_time(SteadyTime now);
  void resize();
  int choose_queue(uint64_t flow);
  bool can_seat(int seats) const;
  Request* next_request();
  void put_in_line(Request& request, int at);
  void take_from_line(Request& request);
  void settle(Queue& queue);
  static void hold_to_arrival(Queue& queue);

  QueueSettings settings_;
  int limit_;
  SteadyTime now_;
  double virtual_now_ = 0;  // seat-seconds that each active queue has had
  std::vector<Queue> queues_;
  // Of the queues, so that no request has to look at all of them: how many are active, the seats that their requests use or want,
  // and those in which somebody waits, ascending.
  int active_ = 0, seats_of_queues_ = 0;
  std::vector<int> lines_;
  int robin_ = 0;
  size_t arrivals_ = 0;
  int executing_ = 0, waiting_ = 0, seats_in_use_ = 0, seats_waiting_ = 0;
};

}  // namespace coracle::fairness
