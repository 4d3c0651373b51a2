// SPDX-License-Identifier: Apache-2.0
// See flow_controller.h.
#include "daemon/flowcontrol/flow_controller.h"

#include <algorithm>

#include "daemon/flowcontrol/seats.h"

namespace coracle::flowcontrol {

struct FlowController::Level {
  Level(LevelRule given, SteadyTime now) : rule(std::move(given)), queues(rule.queues, 0, now), demand(now) {}

  LevelRule rule;
  bool gone = false;  // its object was deleted; it is removed when it has no requests
  SeatLimits limits;
  QueueSet queues;
  SeatDemand demand;
  double target = 0;
  RetryAfter retry_after;
  std::map<std::string, FlowCount> schemas;
  std::map<uint64_t, int> waiting_of;  // by flow

  void note_demand(SteadyTime now) { demand.set(queues.seats_in_use() + queues.seats_waiting(), now); }
};

struct FlowController::Waiter : Request {
  std::shared_ptr<Level> level;
  FlowCount* flow = nullptr;  // of the level
  std::condition_variable may_run;
};

namespace {

void note(FlowController::Waits& waits, SteadyTime since, SteadyTime now) {
  double seconds = std::chrono::duration<double>(now - since).count();
  auto bound = std::lower_bound(FlowController::kWaitBounds.begin(), FlowController::kWaitBounds.end(), seconds);
  waits.buckets[size_t(bound - FlowController::kWaitBounds.begin())]++;
  waits.seconds += seconds;
}

}  // namespace

FlowController::FlowController(const FlowRules& rules, FlowControllerLimits limits, const Clock& clock)
    : limits_(limits), clock_(clock), adjusted_(clock.steady()) {
  set_rules(rules);
}

FlowController::~FlowController() = default;

void FlowController::set_rules(const FlowRules& rules) {
  auto schemas = std::make_shared<std::vector<SchemaRule>>();
  for (const json::value& object : rules.schemas) schemas->emplace_back(view::FlowSchema(object));
  std::lock_guard lock(mutex_);
  SteadyTime now = clock_.steady();
  for (const auto& level : levels_) level->gone = true;
  for (const json::value& object : rules.levels) {
    LevelRule rule = read_level(object);
    if (Level* level = level_named(rule.name)) {
      level->queues.configure(rule.queues, now);
      level->rule = std::move(rule);
      level->gone = false;
    } else {
      levels_.push_back(std::make_shared<Level>(std::move(rule), now));
    }
  }
  std::erase_if(levels_, [](const auto& level) { return level->gone && level->queues.idle(); });

  std::vector<ShareSettings> shares;
  for (const auto& level : levels_) shares.push_back(level->rule.shares);
  std::vector<SeatLimits> limits = seat_limits(shares, limits_.seats);
  for (size_t i = 0; i < levels_.size(); i++) levels_[i]->limits = limits[i];

  std::erase_if(*schemas, [&](SchemaRule& schema) {
    Level* level = level_named(schema.level);
    if (!level || level->gone) return true;  // the schema is dangling
    schema.level_uid = level->rule.uid;
    schema.exempt = level->rule.shares.exempt;
    return false;
  });
  std::sort(schemas->begin(), schemas->end());
  schemas_ = std::move(schemas);
  adjust(now);
}

Classified FlowController::classify(const User& user, const auth::Attributes& attributes) const {
  SchemaRules schemas;
  {
    std::lock_guard lock(mutex_);
    schemas = schemas_;
  }
  return flowcontrol::classify(schemas, user, attributes);
}

int FlowController::seats_max(const Classified& who) const {
  std::lock_guard lock(mutex_);
  for (const auto& level : levels_)
    if (level->rule.name == who.level() && level->rule.queues.queues > 0)
      return seats_max_of_level(level->limits.nominal, level->rule.queues.hand_size);
  return 0;
}

FlowController::Level* FlowController::level_named(const std::string& name) {
  for (const auto& level : levels_)
    if (level->rule.name == name) return level.get();
  return nullptr;
}

// Requires the lock. Sets new limits according to the recent demand. Exempt requests take nothing from the others: the seats are
// a tenth of kube-apiserver's, so a script of the administrator's would leave a few to everybody else, for seconds after its end.
void FlowController::adjust(SteadyTime now) {
  adjusted_ = now;
  std::vector<Claim> claims;
  for (const auto& level : levels_) {
    level->demand.close_period(now);
    const bool exempt = level->rule.shares.exempt;
    claims.push_back({exempt, level->limits, exempt ? 0 : level->demand.high_watermark, level->demand.smoothed});
  }
  SeatAllocation allocated = allocate_seats(claims);
  fair_fraction_ = allocated.fair_fraction;
  for (size_t i = 0; i < levels_.size(); i++) {
    levels_[i]->target = allocated.targets[i];
    const bool exempt = levels_[i]->rule.shares.exempt;
    levels_[i]->queues.set_limit(exempt ? levels_[i]->demand.high_watermark : allocated.seats[i], now);
  }
  for (const auto& level : levels_) dispatch_waiting(*level, now);
}

void FlowController::adjust_when_due(SteadyTime now) {
  if (now - adjusted_ >= kAdjustmentPeriod) adjust(now);
}

// Requires the lock.
void FlowController::dispatch_waiting(Level& level, SteadyTime now) {
  while (Request* request = level.queues.start_next(now)) static_cast<Waiter*>(request)->may_run.notify_one();
}

// Requires the lock.
Error FlowController::reject(Level& level, FlowCount& flow, const char* reason, SteadyTime now) {
  flow.rejected[reason]++;
  level.retry_after.refused(std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count());
  ErrorDetails details;
  details.retry_after_seconds = level.retry_after.seconds();
  return Error(Code::too_many_requests, "Too many requests, please try again later.").with(std::move(details));
}

Result<FlowController::Seat> FlowController::enter(const Classified& who, int seats) {
  auto waiter = std::make_unique<Waiter>();
  waiter->seats = seats;
  std::unique_lock lock(mutex_);
  SteadyTime began = clock_.steady();
  adjust_when_due(began);
  auto found = std::find_if(levels_.begin(), levels_.end(), [&](const auto& level) { return level->rule.name == who.level(); });
  if (found == levels_.end()) return Seat();  // the level was deleted after the classification
  std::shared_ptr<Level> level = waiter->level = *found;
  FlowCount& flow = level->schemas[who.schema()];
  waiter->flow = &flow;

  Arrival arrival = level->queues.arrive(*waiter, who.flow(), began);
  if (arrival == Arrival::no_seats) return reject(*level, flow, "concurrency-limit", began);
  if (arrival == Arrival::queue_full) return reject(*level, flow, "queue-full", began);
  if (arrival == Arrival::waits) dispatch_waiting(*level, began);
  level->note_demand(began);
  SteadyTime now = began;
  if (!waiter->running) {
    int& of_flow = level->waiting_of[who.flow()];
    bool crowded = waiting_ >= limits_.waiting || of_flow >= std::max(limits_.waiting / 2, 1);
    if (crowded) {  // no thread is available for it
      level->queues.give_up(*waiter, began);
      level->note_demand(began);
      if (of_flow == 0) level->waiting_of.erase(who.flow());
      return reject(*level, flow, "queue-full", began);
    }
    of_flow++, waiting_++, flow.waiting++, flow.waiting_seats += seats;
    SteadyTime until = began + limits_.timeout;
    while (!waiter->running && clock_.steady() < until) {
      waiter->may_run.wait_for(lock, std::min<std::chrono::nanoseconds>(until - clock_.steady(), kAdjustmentPeriod));
      adjust_when_due(clock_.steady());
    }
    waiting_--, flow.waiting--, flow.waiting_seats -= seats;
    if (--level->waiting_of[who.flow()] == 0) level->waiting_of.erase(who.flow());
    now = clock_.steady();
  }
  if (!waiter->running) {
    level->queues.give_up(*waiter, now);
    level->note_demand(now);
    dispatch_waiting(*level, now);  // it may have blocked narrower requests
    note(flow.refused, began, now);
    return reject(*level, flow, "time-out", now);
  }
  note(flow.waited, began, now);
  flow.executing++, flow.executing_seats += seats, flow.dispatched++;
  return Seat(*this, std::move(waiter));
}

void FlowController::leave(Waiter& request) {
  std::lock_guard lock(mutex_);
  SteadyTime now = clock_.steady();
  Level& level = *request.level;
  request.flow->executing--, request.flow->executing_seats -= request.seats;
  level.queues.finish(request, now);
  dispatch_waiting(level, now);
  level.note_demand(now);
  adjust_when_due(now);
  if (level.gone && level.queues.idle()) std::erase_if(levels_, [&](const auto& one) { return one.get() == &level; });
}

FlowController::Seat::Seat(FlowController& controller, std::unique_ptr<Waiter> request)
    : controller_(&controller), request_(std::move(request)) {}
FlowController::Seat::Seat(Seat&& other) noexcept = default;
FlowController::Seat::~Seat() {
  if (request_) controller_->leave(*request_);
}

std::vector<FlowController::Count> FlowController::counts() const {
  std::lock_guard lock(mutex_);
  std::vector<Count> out;
  for (const auto& level : levels_) {
    const SeatDemand& demand = level->demand;
    out.push_back({level->rule.name, level->limits, level->queues.limit(), demand.high_watermark, demand.average,
                   demand.deviation, demand.smoothed, level->target, level->schemas, level->queues.executing(),
                   level->queues.waiting()});
  }
  return out;
}

double FlowController::fair_fraction() const {
  std::lock_guard lock(mutex_);
  return fair_fraction_;
}

}  // namespace coracle::flowcontrol
