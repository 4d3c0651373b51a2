// SPDX-License-Identifier: Apache-2.0
// See queue_set.h.
#include "daemon/fairness/queue_set.h"

#include <algorithm>
#include <limits>

#include "daemon/fairness/shuffle.h"

namespace coracle::fairness {
namespace {

double guessed_work(const Request& request) { return request.seats * kServiceGuess.count(); }

}  // namespace

// Virtual time is what an active queue gets when all get the same.
void QueueSet::pass_time(SteadyTime now) {
  double passed = std::chrono::duration<double>(now - now_).count();
  now_ = now;
  int active = 0, wanted = 0;
  for (const Queue& queue : queues_) active += queue.active(), wanted += queue.seats_in_use + queue.seats_waiting;
  if (active > 0) virtual_now_ += passed * double(std::min(wanted, limit_)) / active;
}

// Queues that are too many go from the end, where requests do not have to be told another number.
void QueueSet::resize() {
  size_t wanted = size_t(std::max(settings_.queues, 0));
  if (queues_.size() < wanted) queues_.resize(wanted);
  while (queues_.size() > wanted && !queues_.back().active()) queues_.pop_back();
  if (robin_ >= queues_.size()) robin_ = 0;
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

// One that wants more than there is runs when it is alone.
bool QueueSet::can_seat(int seats) const {
  if (settings_.unlimited || seats_in_use_ + seats <= limit_) return true;
  return seats > limit_ && executing_ == 0;
}

// The queue of the hand with the least work before it; among equals, turn by turn.
int QueueSet::choose_queue(uint64_t flow) {
  std::vector<int> hand = deal(flow, settings_.queues, settings_.hand_size);
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
  Queue& queue = queues_[size_t(at)];
  if (seats_in_use_ >= limit_ && int(queue.waiting.size()) >= settings_.length_limit) return Arrival::queue_full;
  if (!queue.active()) queue.next_begin = virtual_now_;
  request.queue = at, request.arrived = virtual_now_;
  queue.waiting.push_back(&request);
  queue.seats_waiting += request.seats;
  waiting_++, seats_waiting_ += request.seats;
  hold_to_arrival(queue);
  return Arrival::waits;
}

// A queue that could not use what it was due has no claim to it later.
void QueueSet::hold_to_arrival(Queue& queue) {
  if (!queue.waiting.empty()) queue.next_begin = std::max(queue.next_begin, queue.waiting.front()->arrived);
}

// The queue whose oldest request would be through first, beginning after the one that had the last turn.
QueueSet::Queue* QueueSet::next_queue() {
  Queue* best = nullptr;
  size_t chosen = robin_;
  double earliest = std::numeric_limits<double>::infinity();
  for (size_t i = 1; i <= queues_.size(); i++) {
    size_t at = (robin_ + i) % queues_.size();
    Queue& queue = queues_[at];
    if (queue.waiting.empty()) continue;
    double through = queue.next_begin + guessed_work(*queue.waiting.front());
    if (through < earliest) best = &queue, earliest = through, chosen = at;
  }
  if (!best || !can_seat(best->waiting.front()->seats)) return nullptr;  // a wide one is waited for, lest it never comes
  robin_ = chosen;
  return best;
}

std::vector<Request*> QueueSet::dispatch(SteadyTime now) {
  pass_time(now);
  std::vector<Request*> seated;
  for (Queue* queue; waiting_ > 0 && (queue = next_queue());) {
    Request* next = queue->waiting.front();
    queue->waiting.pop_front();
    queue->seats_waiting -= next->seats, queue->seats_in_use += next->seats;
    queue->executing++;
    waiting_--, seats_waiting_ -= next->seats;
    executing_++, seats_in_use_ += next->seats;
    queue->next_begin += guessed_work(*next);
    hold_to_arrival(*queue);
    next->running = true, next->began = now;
    seated.push_back(next);
  }
  return seated;
}

void QueueSet::finish(Request& request, SteadyTime now) {
  pass_time(now);
  executing_--, seats_in_use_ -= request.seats;
  request.running = false;
  if (request.queue < 0) return;
  Queue& queue = queues_[size_t(request.queue)];
  queue.executing--, queue.seats_in_use -= request.seats;
  queue.next_begin -= request.seats * (kServiceGuess - std::chrono::duration<double>(now - request.began)).count();
  hold_to_arrival(queue);
  resize();
}

void QueueSet::give_up(Request& request, SteadyTime now) {
  pass_time(now);
  Queue& queue = queues_[size_t(request.queue)];
  std::erase(queue.waiting, &request);
  queue.seats_waiting -= request.seats;
  waiting_--, seats_waiting_ -= request.seats;
  hold_to_arrival(queue);
  resize();
}

}  // namespace coracle::fairness
