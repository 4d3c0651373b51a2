// SPDX-License-Identifier: Apache-2.0
// See queue_set.h.
#include "daemon/flowcontrol/queue_set.h"

#include <algorithm>
#include <limits>

#include "daemon/flowcontrol/shuffle.h"

namespace coracle::flowcontrol {
namespace {

double guessed_work(const Request& request) { return request.seats * kServiceGuess.count(); }

}  // namespace

// Advances the virtual time: what each active queue gets if all get the same.
void QueueSet::pass_time(SteadyTime now) {
  double passed = std::chrono::duration<double>(now - now_).count();
  now_ = now;
  if (active_ > 0) virtual_now_ += passed * double(std::min(seats_of_queues_, limit_)) / active_;
}

// Surplus queues are removed from the end, so that requests keep their queue numbers.
void QueueSet::resize() {
  size_t wanted = size_t(std::max(settings_.queues, 0));
  if (queues_.size() < wanted) queues_.resize(wanted);
  while (queues_.size() > wanted && !queues_.back().active()) queues_.pop_back();
  if (robin_ >= int(queues_.size())) robin_ = 0;
}

void QueueSet::configure(const QueueSettings& settings, SteadyTime now) {
  pass_time(now);
  settings_ = settings;
  resize();
}

void QueueSet::set_limit(int seats, SteadyTime now) {
  pass_time(now);
  limit_ = seats;
}

// A request with more seats than the limit runs alone.
bool QueueSet::can_seat(int seats) const {
  if (settings_.unlimited || seats_in_use_ + seats <= limit_) return true;
  return seats > limit_ && executing_ == 0;
}

// The queue of the flow's hand with the least work; ties are resolved round-robin.
int QueueSet::choose_queue(uint64_t flow) {
  const Hand hand = deal(flow, settings_.queues, settings_.hand_size);
  size_t first = arrivals_++ % hand.size();
  int best = -1;
  for (size_t i = 0; i < hand.size(); i++) {
    int at = hand[(first + i) % hand.size()];
    if (best < 0 || queues_[size_t(at)].seats_waiting < queues_[size_t(best)].seats_waiting) best = at;
  }
  return best;
}

Arrival QueueSet::arrive(Request& request, uint64_t flow, SteadyTime now) {
  pass_time(now);
  if (settings_.unlimited || settings_.queues == 0) {
    if (!can_seat(request.seats)) return Arrival::no_seats;
    request.running = true, request.queue = -1, request.began = now;
    executing_++, seats_in_use_ += request.seats;
    return Arrival::runs;
  }
  int at = choose_queue(flow);
  if (seats_in_use_ >= limit_ && queues_[size_t(at)].length >= settings_.length_limit) return Arrival::queue_full;
  put_in_line(request, at);
  return Arrival::waits;
}

void QueueSet::put_in_line(Request& request, int at) {
  Queue& queue = queues_[size_t(at)];
  if (!queue.active()) active_++, queue.next_begin = virtual_now_;
  request.queue = at, request.next = nullptr, request.arrived = virtual_now_;
  (queue.last ? queue.last->next : queue.first) = &request;
  queue.last = &request;
  if (queue.length++ == 0) lines_.insert(std::lower_bound(lines_.begin(), lines_.end(), at), at);
  queue.seats_waiting += request.seats, seats_of_queues_ += request.seats;
  waiting_++, seats_waiting_ += request.seats;
  hold_to_arrival(queue);
}

// Removes the request from its queue. The caller updates whether the queue is active.
void QueueSet::take_from_line(Request& request) {
  Queue& queue = queues_[size_t(request.queue)];
  Request* before = nullptr;
  for (Request* one = queue.first; one != &request; one = one->next) before = one;
  (before ? before->next : queue.first) = request.next;
  if (queue.last == &request) queue.last = before;
  if (--queue.length == 0) lines_.erase(std::lower_bound(lines_.begin(), lines_.end(), request.queue));
  queue.seats_waiting -= request.seats, seats_of_queues_ -= request.seats;
  waiting_--, seats_waiting_ -= request.seats;
}

// A queue that did not use its share cannot claim it later.
void QueueSet::hold_to_arrival(Queue& queue) {
  if (queue.first) queue.next_begin = std::max(queue.next_begin, queue.first->arrived);
}

// Of the queues, the one whose oldest request would finish first; the search starts after the queue served last.
Request* QueueSet::next_request() {
  Request* best = nullptr;
  double earliest = std::numeric_limits<double>::infinity();
  auto after = std::upper_bound(lines_.begin(), lines_.end(), robin_) - lines_.begin();
  for (size_t i = 0; i < lines_.size(); i++) {
    Queue& queue = queues_[size_t(lines_[(size_t(after) + i) % lines_.size()])];
    double through = queue.next_begin + guessed_work(*queue.first);
    if (through < earliest) best = queue.first, earliest = through;
  }
  if (!best || !can_seat(best->seats)) return nullptr;  // waits for a wide request, so that it is not starved
  robin_ = best->queue;
  return best;
}

Request* QueueSet::start_next(SteadyTime now) {
  pass_time(now);
  Request* next = next_request();
  if (!next) return nullptr;
  take_from_line(*next);
  Queue& queue = queues_[size_t(next->queue)];
  queue.executing++, queue.seats_in_use += next->seats, seats_of_queues_ += next->seats;
  executing_++, seats_in_use_ += next->seats;
  queue.next_begin += guessed_work(*next);
  hold_to_arrival(queue);
  next->running = true, next->began = now;
  return next;
}

// Called after a request has left the queue.
void QueueSet::settle(Queue& queue) {
  hold_to_arrival(queue);
  if (!queue.active()) active_--;
  resize();
}

void QueueSet::finish(Request& request, SteadyTime now) {
  pass_time(now);
  executing_--, seats_in_use_ -= request.seats;
  request.running = false;
  if (request.queue < 0) return;
  Queue& queue = queues_[size_t(request.queue)];
  queue.executing--, queue.seats_in_use -= request.seats, seats_of_queues_ -= request.seats;
  queue.next_begin -= request.seats * (kServiceGuess - std::chrono::duration<double>(now - request.began)).count();
  settle(queue);
}

void QueueSet::give_up(Request& request, SteadyTime now) {
  pass_time(now);
  take_from_line(request);
  Queue& queue = queues_[size_t(request.queue)];
  settle(queue);
}

}  // namespace coracle::flowcontrol
