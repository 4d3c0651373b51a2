// SPDX-License-Identifier: Apache-2.0
// The process coracled: reads the configuration, creates the components (daemon.h), notifies systemd, and waits. When the machine
// gets another address, the components are recreated.
#include <getopt.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <variant>

#include "daemon/daemon.h"
#include "daemon/idle_detector.h"
#include "daemon/journal.h"
#include "daemon/machine.h"
#include "daemon/registry_source.h"
#include "daemon/service_manager.h"
#include "runtime/base/text.h"
#include "runtime/sys/clock_watch.h"
#include "runtime/sys/memory.h"
#include "runtime/sys/netlink.h"
#include "runtime/sys/process.h"

namespace coracle {
namespace {

// Capabilities that coracled never needs: setting clocks and wake alarms, rebooting, loading modules (the kernel loads those for
// mounts and rules itself), raw I/O, and the kernel's log and audit. Pods may get them: child processes take their capabilities
// from the bounding set, which is not changed.
constexpr int kNeedless[] = {CAP_SYS_TIME,  CAP_WAKE_ALARM,     CAP_BLOCK_SUSPEND, CAP_SYS_BOOT,      CAP_SYS_MODULE,
                             CAP_SYS_RAWIO, CAP_SYSLOG,         CAP_AUDIT_CONTROL, CAP_AUDIT_READ,    CAP_AUDIT_WRITE,
                             CAP_SYS_PACCT, CAP_SYS_TTY_CONFIG, CAP_IPC_OWNER,     CAP_NET_BROADCAST, CAP_LINUX_IMMUTABLE,
                             CAP_LEASE,     CAP_MAC_OVERRIDE};

// Drops these capabilities, to limit the damage of a bug.
void give_up_what_is_needless() {
  uint64_t needless = 0;
  for (int each : kNeedless) needless |= uint64_t(1) << each;
  if (auto done = sys::do_without_capabilities(needless); !done) log_warning("main", done.error().text());
  sys::close_own_memory();
}

void prepare_process() {
  sys::prefer_small_memory();
  give_up_what_is_needless();
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    // Raises the limit as far as possible; a lower limit only reduces the number of clients.
    (void)::setrlimit(RLIMIT_NOFILE, &files);
  }
  ::umask(022);
  std::signal(SIGPIPE, SIG_IGN);
}

constexpr const char* kPodsUnit = "coracle-pods.service";

enum class Why { asked_to_end, moved, restored };  // why the components are stopped

// The machine's present address, if it is not the one in use. If that one is lost and there is no other, the recreated components
// use the pods' gateway, by which pods still reach the API.
std::optional<std::string> moved_to(const Daemon& daemon) {
  auto now = host_address();
  if (!now || *now == daemon.node_address()) return std::nullopt;
  const bool is_none = now->starts_with("127.");
  // The gateway, or an address that is not selected automatically.
  if (is_none && has_address(daemon.node_address()).value_or(true)) return std::nullopt;
  return is_none ? "none" : *now;
}

// A time to wait for; nullopt: none.
using Moment = std::optional<SteadyTime>;

// The timeout for poll(): until the earliest of them, -1 if there is none.
int milliseconds_until(std::initializer_list<Moment> moments) {
  Moment first;
  for (const Moment& each : moments)
    if (each && (!first || *each < *first)) first = each;
  if (!first) return -1;
  return int(std::max<int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(*first - system_clock().steady()).count()));
}

bool has_come(const Moment& moment) { return moment && system_clock().steady() >= *moment; }

// Frees memory when the daemon is idle. Polls only while there is work, and sleeps until the next request otherwise.
class Resting {
 public:
  explicit Resting(const Daemon& daemon) : daemon_(daemon), look_at_(system_clock().steady() + IdleDetector::kLookPause) {}
  const Moment& look_at() const { return look_at_; }

  void woken() {
    if (!look_at_) look_at_ = system_clock().steady() + IdleDetector::kLookPause;
  }
  void look() {
    if (!look_at_ && detector_.is_overdue(daemon_.work_done())) woken();  // work without requests: restarting pods, jobs
    if (!has_come(look_at_)) return;
    IdleDetector::Verdict verdict = detector_.look(daemon_.work_done());
    if (verdict.rest) daemon_.rest();
    look_at_.reset();
    if (verdict.look_again) look_at_ = system_clock().steady() + *verdict.look_again;
    else daemon_.listen_for_work();
  }

 private:
  const Daemon& daemon_;
  IdleDetector detector_;
  Moment look_at_;  // the start was work, too
};

// Blocks until the process is asked to stop, the machine has had another address for kSettle, or a restored store is ready.
// Notifies systemd's watchdog while the components respond, and the components when the wall clock is set or they are idle.
Result<Why> wait_for_end(const Fd& signals, const Daemon& daemon, bool follow_address) {
  constexpr std::chrono::milliseconds kSettle{2000};
  uint64_t watchdog_us = 0;
  bool watched = sd_watchdog_enabled(0, &watchdog_us) > 0;
  auto monitor = TRY(sys::NetlinkMonitor::open());
  auto clock = sys::ClockWatch::open();
  if (!clock) log_warning("main", "changes of the system clock cannot be watched: " + clock.error().text());
  Moment look_at;                                         // time of the next check after a change of addresses
  if (follow_address) look_at = system_clock().steady();  // they may have changed while the components were created
  Resting resting(daemon);
  for (;;) {
    Moment tell_watchdog;
    if (watched) tell_watchdog = system_clock().steady() + std::chrono::microseconds(watchdog_us / 2);
    pollfd on[] = {{signals.get(), POLLIN, 0},
                   {follow_address ? monitor.fd().get() : -1, POLLIN, 0},
                   {daemon.restored().get(), POLLIN, 0},
                   {clock ? clock->fd().get() : -1, POLLIN, 0},
                   {resting.look_at() ? -1 : daemon.stirred().get(), POLLIN, 0}};
    int wait_ms = milliseconds_until({tell_watchdog, look_at, resting.look_at()});
    if (::poll(on, std::size(on), wait_ms) < 0 && errno != EINTR) return Error::from_errno("wait");
    signalfd_siginfo got{};
    if (on[0].revents && ::read(signals.get(), &got, sizeof got) == sizeof got &&
        (got.ssi_signo == SIGTERM || got.ssi_signo == SIGINT))
      return Why::asked_to_end;
    if (on[2].revents) return Why::restored;
    if (on[3].revents && clock && clock->was_set()) {
      log_notice("main", "the clock was set; what waits for a time is looked at again");
      daemon.clock_was_set();
    }
    if (on[1].revents) {
      monitor.drain();
      if (!look_at) look_at = system_clock().steady() + kSettle;
    }
    if (has_come(look_at)) {
      look_at.reset();
      if (auto address = moved_to(daemon)) {
        log_notice("main", "this machine has another address; starting anew, pods go on",
                   {{"was", daemon.node_address()}, {"is", *address}});
        return Why::moved;
      }
    }
    if (on[4].revents) resting.woken();
    resting.look();
    if (watched) {
      daemon.answer();
      sd_notify(0, "WATCHDOG=1");
    }
  }
}

// Terminates the pods before the daemon, which applies their grace periods and records their results.
void end_pods_with(Daemon& daemon, const Config& config) {
  constexpr std::chrono::seconds kOwnTime{30};  // for the daemon itself, in addition to the pods' time
  log_notice("main", "stopping, and so are the pods");
  auto longest = std::chrono::microseconds(std::chrono::seconds(config.shutdown_grace_period) + kOwnTime).count();
  sd_notify(0, ("STOPPING=1\nSTATUS=ending the pods\nEXTEND_TIMEOUT_USEC=" + std::to_string(longest)).c_str());
  daemon.end_pods();
  daemon.wait_for_end_of_pods([] { sd_notify(0, "WATCHDOG=1"); });
}

// Runs one set of components from creation to destruction.
Result<Why> run_once(const Config& config, const Fd& signals) {
  SteadyTime started = system_clock().steady();
  sd_notify(0, "STATUS=starting");
  auto daemon = TRY(Daemon::build(config));
  if (std::string missing = daemon->missing_limits(); !missing.empty()) log_warning("main", missing);
  TRY(daemon->start({}));
  sys::give_memory_back();
  auto took = std::chrono::duration_cast<std::chrono::milliseconds>(system_clock().steady() - started);
  log_info("main", "ready: " + daemon->summary(), {{"ms", std::to_string(took.count())}});
  sd_notify(0, ("READY=1\nSTATUS=" + daemon->summary()).c_str());

  Why why = TRY(wait_for_end(signals, *daemon, config.node_address.empty()));
  if (why == Why::asked_to_end && is_to_be_stopped(kPodsUnit)) {
    end_pods_with(*daemon, config);
  } else if (why == Why::asked_to_end) {
    log_info("main", "stopping; pods go on");
    sd_notify(0, "STOPPING=1\nSTATUS=stopping; pods go on");
  }
  stop_or_exit(*daemon, why == Why::asked_to_end ? EXIT_SUCCESS : EXIT_FAILURE);
  return why;
}

Result<void> run(const Config& config) {
  std::vector<int> wanted = {SIGTERM, SIGINT, SIGHUP};
  sigset_t blocked;
  ::sigemptyset(&blocked);
  for (int signal : wanted) ::sigaddset(&blocked, signal);
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);  // before any thread is created, because all inherit the mask
  Fd signals = TRY(sys::make_signalfd(wanted));
  for (;;) {
    Why why = TRY(run_once(config, signals));
    if (why == Why::asked_to_end) return {};
  }
}

// ---- the command line ----

constexpr const char* kHelp =
    R"(coracled: a whole Kubernetes for one machine
Usage: coracled [OPTION]...

  --config FILE        the configuration file (default /etc/coracle/config.yaml, where there is one)
  --check-config       read the configuration, say what is wrong with it, and end
  --end-pods           end all pods of this machine by their own rules, and remove its pod network; coracled must not be running
  --remove-pods        the same at once, without a grace period
  --set-aside-damaged  check the store; if it is damaged, keep it under another name and begin an empty one; then end
  --version            print the version, and end
  --help               print this, and end
)";

struct Options {
  std::string config = "/etc/coracle/config.yaml";
  bool is_config_given = false;
  bool check_config = false, end_pods = false, remove_pods = false, set_aside_damaged = false;
};

// Parses the command line. If it requests output or is wrong, prints that and returns the exit status.
std::variant<Options, int> read_options(int argc, char** argv) {
  static const option known[] = {{"config", required_argument, nullptr, 'c'},
                                 {"check-config", no_argument, nullptr, 'k'},
                                 {"end-pods", no_argument, nullptr, 'e'},
                                 {"remove-pods", no_argument, nullptr, 'r'},
                                 {"set-aside-damaged", no_argument, nullptr, 'a'},
                                 {"version", no_argument, nullptr, 'v'},
                                 {"help", no_argument, nullptr, 'h'},
                                 {}};
  Options out;
  for (int read; (read = ::getopt_long(argc, argv, "h", known, nullptr)) != -1;) switch (read) {
      case 'c': out.config = optarg, out.is_config_given = true; break;
      case 'k': out.check_config = true; break;
      case 'e': out.end_pods = true; break;
      case 'r': out.remove_pods = true; break;
      case 'a': out.set_aside_damaged = true; break;
      case 'v': std::puts("coracled " CORACLE_VERSION); return 0;
      case 'h': std::fputs(kHelp, stdout); return 0;
      default: std::fputs("See coracled --help.\n", stderr); return 2;  // getopt has printed the error
    }
  if (optind == argc) return out;
  std::fprintf(stderr, "coracled: unexpected argument '%s'\nSee coracled --help.\n", argv[optind]);
  return 2;
}

}  // namespace
}  // namespace coracle

int main(int argc, char** argv) {
  auto read = coracle::read_options(argc, argv);
  if (const int* status = std::get_if<int>(&read)) return *status;
  const auto& options = std::get<coracle::Options>(read);

  coracle::prepare_process();
  if (options.is_config_given && ::access(options.config.c_str(), F_OK) != 0) {
    std::fprintf(stderr, "coracled: %s: %s\n", options.config.c_str(), std::strerror(errno));
    return 2;
  }
  auto config = coracle::read_config(options.config);
  if (!config) {
    std::fprintf(stderr, "coracled: %s\n", config.error().text().c_str());
    return 2;
  }
  const bool ends = options.end_pods || options.remove_pods || options.set_aside_damaged;
  auto good = ends ? coracle::Result<void>() : coracle::Daemon::check(*config);
  if (good && options.check_config) {
    const auto refused = coracle::refusals_in(coracle::read_registry_settings(*config));
    if (!refused.empty()) good = coracle::Error(coracle::Code::invalid, coracle::join(refused, "\ncoracled: "));
  }
  // What is not there may come: then the start is tried again. What is wrong stays wrong until somebody corrects it.
  const bool stays_wrong =
      !good && (good.error().code() == coracle::Code::invalid || good.error().code() == coracle::Code::bad_request);
  if (!good && (options.check_config || stays_wrong)) {
    std::fprintf(stderr, "coracled: %s\n", good.error().text().c_str());
    return 2;
  }
  if (options.check_config) return 0;
  coracle::choose_log(config->log_level);
  auto done = options.end_pods            ? coracle::end_pods(*config, coracle::is_machine_ending())
              : options.remove_pods       ? coracle::remove_pods(*config)
              : options.set_aside_damaged ? coracle::set_aside_damaged(*config)
                                          : coracle::run(*config);
  if (done) return 0;
  coracle::log_error("main", done.error().text());
  return 1;
}
