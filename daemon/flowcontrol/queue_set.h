// SPDX-License-Identifier: Apache-2.0
// QueueSet: the queues and seats of one priority level: which requests run, which wait in which queue, and which is next. Pure:
// time is an argument, and nothing sleeps or locks.
//   arrive ▸ the shortest queue of the flow's hand ▸ start_next: the queue whose oldest request would finish first ▸ finish
// Each queue has the virtual time at which its next request begins. Starting a request advances it by the estimated work
// (seats times kServiceGuess); finishing the request corrects it by the actual work. So a queue that was served a lot waits for
// the others, and wide or slow requests are charged accordingly. Source: Kubernetes "API Priority and Fairness"; fair queuing for
// server requests, apiserver fairqueuing/queueset.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "runtime/base/clock.h"

namespace coracle::flowcontrol {

constexpr std::chrono::duration<double> kServiceGuess{0.003};  // estimated duration of a request

struct QueueSettings {
  bool unlimited = false;  // an exempt level: all requests run
  int queues = 0;          // 0: requests never wait
  int hand_size = 1;
  int length_limit = 50;  // per queue
};

enum class Arrival { runs, waits, no_seats, queue_full };

// One request. It must stay at its address until finish() or give_up().
struct Request {
  int seats = 1;
  bool running = false;

  // Set by the QueueSet.
  int queue = -1;
  Request* next = nullptr;  // the next request in its queue
  double arrived = 0;       // in virtual time
  SteadyTime began{};
};

class QueueSet {
 public:
  QueueSet(const QueueSettings& settings, int limit, SteadyTime now) : settings_(settings), limit_(limit), now_(now) { resize(); }

  // Changes the settings. Waiting requests keep their places; surplus queues are removed when they are empty.
  void configure(const QueueSettings& settings, SteadyTime now);
  void set_limit(int seats, SteadyTime now);

  // After Arrival::waits, start_next() returns the request when its turn has come, possibly at once.
  Arrival arrive(Request& request, uint64_t flow, SteadyTime now);
  // Starts the request whose turn it is, and returns it. Null: none waits, or there are not enough seats.
  Request* start_next(SteadyTime now);
  void finish(Request& request, SteadyTime now);   // a running request has finished
  void give_up(Request& request, SteadyTime now);  // a waiting request has given up

  int limit() const { return limit_; }
  int executing() const { return executing_; }
  int waiting() const { return waiting_; }
  int seats_in_use() const { return seats_in_use_; }
  int seats_waiting() const { return seats_waiting_; }
  bool idle() const { return executing_ == 0 && waiting_ == 0; }

 private:
  struct Queue {
    Request *first = nullptr, *last = nullptr;  // waiting requests
    int length = 0;
    int executing = 0, seats_in_use = 0, seats_waiting = 0;
    double next_begin = 0;  // in virtual time
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
  double virtual_now_ = 0;  // seat-seconds that each active queue has received
  std::vector<Queue> queues_;
  // Sums over the queues, so that no request must scan them: the number of active queues, the seats that their requests use or
  // wait for, and the queues with waiting requests, ascending.
  int active_ = 0, seats_of_queues_ = 0;
  std::vector<int> lines_;
  int robin_ = 0;
  size_t arrivals_ = 0;
  int executing_ = 0, waiting_ = 0, seats_in_use_ = 0, seats_waiting_ = 0;
};

}  // namespace coracle::flowcontrol
