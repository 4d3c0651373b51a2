// SPDX-License-Identifier: Apache-2.0
// Runtime: THE SEAM between the node agent and Linux. Sandboxes (a pod's shared namespaces, cgroup and coracle-pause),
// containers in them, their exits, and the images they are made of. Knows OCI and the kernel, not Kubernetes: what the
// agent wants to find again after a restart it stores in `metadata`, which the runtime keeps and never reads.
//
// The daemon plans, pause launches (decision 4): a sandbox and its containers live on when the daemon is killed; a new
// Runtime over the same state directory finds them, with every exit code and log line. All calls are thread-safe; those
// on one sandbox are serialised inside. Two implementations pass one contract suite: the real one and the tests' fake.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/base/units.h"
#include "runtime/oci/spec.h"

namespace coracle::runtime {

// ---- images ----

struct ImageConfig {  // Source: opencontainers/image-spec config.md
  std::vector<std::string> entrypoint, cmd, env;
  std::string working_dir, user, stop_signal;
  std::vector<std::string> volumes;
};

struct Image {
  std::string id;                       // "sha256:…" of its config
  std::vector<std::string> references;  // "docker.io/library/nginx:1.27", as tagged here
  std::vector<std::string> digests;     // "docker.io/library/nginx@sha256:…" as pulled
  Bytes size;                           // unpacked
  WallTime created;
  ImageConfig config;
  std::string platform;       // that it was made for, as far as it says: "linux/arm64"
  std::string other_machine;  // "linux/amd64" where this machine is that, and the image is for another; "" otherwise
};

struct Credentials {
  std::string registry;  // host[:port][/path prefix]; as in a docker config.json
  std::string username, password, identity_token;
  std::string source;  // the caller's own: where it has them from; kept with an image that they brought, and compared
  bool operator==(const Credentials&) const = default;
};

// What is known of a right to use an image that is here already. Source: KEP-2535.
enum class ImageAccess : uint8_t {
  preloaded,  // nobody pulled it under this name: it was imported, or is older than these records
  proven,     // its registry gives it to anybody, or has given it for one of the credentials
  unproven,   // only its registry can tell: pull it
};

struct PullProgress {
  Bytes done, total;  // over all layers, as transferred; total is 0 until known
  int layers_done = 0, layers_total = 0;
};

struct Removal {                   // what became of an image
  Image image;                     // as it was, or as it is left
  bool deleted = false;            // with its content; else it has other names
  std::vector<std::string> users;  // who goes on with it: containers, "<sandbox>.<container>", and those who hold it (mount)
};

class ImageStore {
 public:
  virtual ~ImageStore() = default;
  virtual std::vector<Image> list() = 0;
  // By reference ("nginx", "nginx:1.27", "localhost/x@sha256:…", normalised as docker does) or by id. Errors:
  // not_found; invalid when the reference is malformed.
  virtual Result<Image> find(std::string_view reference) = 0;
  // Blocks until the image is complete and on the disk; what was cut off leaves nothing half-made and goes on where it
  // stopped. `progress` may be null. Errors: not_found, unauthorized, unavailable (network), invalid (digest or
  // format).
  virtual Result<Image> pull(std::string_view reference, const std::vector<Credentials>& credentials,
                             const std::function<void(const PullProgress&)>& progress, std::stop_token stop) = 0;
  // Whether who has these credentials may use an image that find() has found under this reference, as far as earlier pulls
  // tell. Credentials that are an earlier pull's under another source, or from its source with another password, are noted.
  virtual ImageAccess access(const Image& image, std::string_view reference, const std::vector<Credentials>& credentials) = 0;
  // Reads an OCI or docker archive (plain, or packed by gzip, zstd, xz, bzip2 or lz4) from `archive` to its end. `name`: for an
  // image without a name of its own, or to override it. Returns what it held. Errors: invalid, too_large.
  virtual Result<std::vector<Image>> import(const Fd& archive, std::string_view name) = 0;
  // Writes an OCI archive of images that are here to `archive` (a pipe will do). An image that is named by a tag has that name in
  // it, others their tags. Layers are written as they lie here: an image that a registry brought has another id in the archive,
  // the same wherever it is exported. Blocks until all is written. Errors: not_found, invalid; errno's.
  virtual Result<void> write_archive(const std::vector<std::string>& references, const Fd& archive) = 0;
  // Removes a name, or by its id (or the beginning of that, six digits at least) a whole image. The content goes with the last
  // name. Errors: not_found; invalid when several ids begin so; conflict when it would go and a container uses it.
  virtual Result<Removal> remove(std::string_view reference) = 0;
  // Gives an image that is here another name, which another image loses. Everybody may use it under that name, as an imported
  // one. Errors: not_found, invalid.
  virtual Result<Image> tag(std::string_view reference, std::string_view name) = 0;
  // Removes what no container uses: images that have no tag, or `all`. Returns them.
  virtual Result<std::vector<Image>> prune(bool all) = 0;
  // uid, gid and groups of "user[:group]" (names or numbers) by the image's own /etc/passwd and /etc/group, which are
  // read as hostile. Errors: invalid when a name is unknown or a number out of range.
  virtual Result<oci::User> resolve_user(const Image& image, std::string_view user) = 0;
  // Mounts the files of an image that is here on a directory of the host: read-only, and nothing in it can be executed or is a
  // device. Until release() nobody removes the image, over restarts too. `holder`: [a-zA-Z0-9][a-zA-Z0-9_.-]*, at most 200 long,
  // the name of no container's snapshot; one that holds another image lets that go. `ids`: the owners are shown as these of the
  // host's users and groups. Errors: not_found; unsupported, this kernel or file system cannot map ids; what the kernel said.
  virtual Result<void> mount(const std::string& image_id, const std::string& holder, const std::string& directory,
                             const std::vector<oci::IdMapping>& ids) = 0;
  // Lets go of the image that mount() held, once the caller has unmounted it. Succeeds when there is none.
  virtual Result<void> release(const std::string& holder) = 0;
};

// ---- directory trees ----

struct TreeCount {
  int64_t entries = 0;
  Bytes bytes;  // of files, as long as they are
};
using TreeProgress = std::function<void(const TreeCount& done)>;

// Trees of files that containers have shaped, as archives and copied. Each call has a confined process of its own, which sees
// nothing but the descriptors. What is kept of every entry: type, mode, owners, time of change, attributes (user.*, file
// capabilities, POSIX access lists), hard links, and the holes of files. Sockets are left out, and what is mounted in the tree.
class Trees {
 public:
  virtual ~Trees() = default;
  // Writes what `directory` holds as a tar stream (pax), compressed by zstd, to `archive` (a pipe will do). Blocks. `progress`
  // may be null. Errors: conflict, a file shrank while it was read; cancelled; errno's.
  virtual Result<TreeCount> write(const Fd& directory, const Fd& archive, const TreeProgress& progress, std::stop_token stop) = 0;
  // The reverse, into an empty directory, which is half full after an error; else all is on the disk. Takes what the archives of
  // images may be packed with, too. Blocks. Errors: invalid for what is no archive, or leads out of the directory; cancelled;
  // errno's (ENOSPC, EDQUOT).
  virtual Result<TreeCount> read(const Fd& archive, const Fd& directory, const TreeProgress& progress, std::stop_token stop) = 0;
  // Copies a tree into an empty directory, which is half full after an error; else all is on the disk. Shares the blocks of files
  // where the file system can. Blocks. Errors as above.
  virtual Result<TreeCount> copy(const Fd& from, const Fd& to, const TreeProgress& progress, std::stop_token stop) = 0;
};

// ---- sandboxes and containers ----

constexpr int kSandboxContainersMax = 512;  // containers of one sandbox, ended ones that were not removed included

struct SandboxSpec {
  std::string id;        // [a-z0-9-]{1,64}; a pod's uid
  std::string metadata;  // the caller's own, returned as it is
  std::string hostname;
  bool host_network = false, host_ipc = false, host_pid = false, share_process_namespace = false;
  // Of a user namespace of its own, to which its network, ipc and names then belong. Empty: the host's. The container's
  // root has to be among them, and nothing else of the pod's may be the host's.
  std::vector<oci::IdMapping> uid_mappings, gid_mappings;
  std::map<std::string, std::string> sysctl;
  oci::Resources resources;  // of the whole pod
  std::string cgroup_class;  // "guaranteed", "burstable", "besteffort": the cgroup the pod's stands in
};

// CRI log lines: <time> <stream> <F|P> <content>. A full file becomes <path>.1, that one <path>.2, up to <path>.<files
// - 1>.
struct LogPolicy {   // Source: KEP-1819, kubelet cri-api logging
  std::string path;  // "" = none kept; its directory exists
  Bytes rotate_at{10 << 20};
  int files = 5;
};

struct ContainerSpec {
  std::string id;        // unique in its sandbox, [a-zA-Z0-9_.-]{1,128}; the agent uses "<name>-<restart count>"
  std::string metadata;  // the caller's own
  std::string image_id;  // "sha256:…": the rootfs is an overlay over it; "" = spec.root.path
  oci::Spec spec;        // namespaces that are not named come from the sandbox (network, ipc, uts) or are new (pid, mount)
  LogPolicy log;
  bool open_stdin = false;  // false: /dev/null
  bool stdin_once = false;  // the first attach with input has it for itself alone, and the container's ends with it
  // The process's own 0, 1 and 2, for a caller that stays its reader; then no log is kept. Null: pause reads them.
  std::shared_ptr<const std::array<Fd, 3>> streams;
  std::string stop_signal = "SIGTERM";
  std::string target;  // a running container of the sandbox: they see each other's processes, and end with its first one
};

struct ExitStatus {
  int exit_code = 0;  // 128 + signal when killed by one
  int signal = 0;
  bool oom_killed = false;
  WallTime started, finished;
};

struct ContainerState {
  std::string id, metadata;
  bool running = false;
  int pid = 0;  // 0 unless running
  WallTime started;
  std::optional<ExitStatus> exit;
};

struct SandboxState {
  std::string id, metadata;
  bool alive = false;  // pause is there; false: the machine was rebooted, or pause was killed. Only remove is left.
  int pid = 0;
  WallTime created;
  std::vector<ContainerState> containers;
};

struct ExecSpec {
  std::vector<std::string> args;
  std::optional<std::vector<std::string>> env;  // absent: the container's own
  bool terminal = false;
  uint16_t width = 0, height = 0;
  bool use_stdin = false;
  std::vector<std::string> extra_env;                // in addition
  std::string cwd;                                   // "" = the container's own
  std::shared_ptr<const std::array<Fd, 3>> streams;  // the process's own 0, 1 and 2, instead of pipes
};

// One process started beside a container's own. Its descriptors are the caller's to read and write. Destroying it kills
// the process when it is still there.
class Exec {
 public:
  virtual ~Exec() = default;
  virtual Fd take_stdin() = 0;  // invalid when not asked for; with a terminal: its master, used for all three
  virtual Fd take_stdout() = 0;
  virtual Fd take_stderr() = 0;
  virtual Result<void> resize(uint16_t width, uint16_t height) = 0;
  virtual Result<int> wait(std::stop_token stop) = 0;  // blocks; exit code, 128 + signal. Errors: cancelled
};

struct Usage {
  std::chrono::nanoseconds cpu{0};
  // Where the kernel does not count for cgroups, both are what the processes have mapped themselves, without page cache.
  Bytes memory, memory_working_set;
  int64_t processes = 0;
};

// Which limits this machine can hold. `missing` says in one sentence why not and what would help, "" when all is there.
struct Enforcement {
  bool memory = false, cpu = false, pids = false, io = false, cpuset = false;
  std::string missing;
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual ImageStore& images() = 0;
  virtual Trees& trees() = 0;
  virtual Enforcement enforcement() const = 0;
  // What all pods together may hold of memory, as it is set now. Nothing: no bound, or none that is enforced.
  virtual std::optional<Bytes> memory_bound() const = 0;

  // Names a sandbox whose state has changed by itself: an exit, an OOM kill, pause gone. May be called from any thread,
  // also for changes that the caller caused; must not block. Set before the first sandbox is made.
  virtual void on_change(std::function<void(const std::string& sandbox_id)> notify) = 0;

  // Everything there is, found again after a restart too. Does not block for long.
  virtual Result<std::vector<SandboxState>> sandboxes() = 0;
  virtual Result<SandboxState> sandbox(const std::string& id) = 0;  // Errors: not_found

  // Makes the namespaces, the cgroup and pause; the network namespace has only loopback, up. Errors: already_exists,
  // and what the kernel said, with the step named; then nothing is left behind.
  virtual Result<void> create_sandbox(const SandboxSpec& spec) = 0;
  virtual Result<Fd> network_namespace(const std::string& id) = 0;
  // Kills what is left (SIGKILL), and removes cgroup, mounts, records. Succeeds when there is nothing. The log files
  // stay.
  virtual Result<void> remove_sandbox(const std::string& id) = 0;
  // How much CPU time the sandboxes of a class get together against other classes: cpu.weight of cgroup v2, 1 to 10000. Does
  // nothing where enforcement().cpu is false.
  virtual Result<void> set_class_weight(const std::string& cgroup_class, uint64_t weight) = 0;

  // Returns once the container's program was executed, or fails with the step that did not work, leaving nothing.
  // Errors: invalid/not_found for what the spec asks (no such program: text as runc words it), conflict when the id is
  // in use.
  virtual Result<void> start_container(const std::string& sandbox_id, const ContainerSpec& spec) = 0;
  virtual Result<void> signal_container(const std::string& sandbox_id, const std::string& id, int signal) = 0;
  // SIGKILL to everything in the container's cgroup.
  virtual Result<void> kill_container(const std::string& sandbox_id, const std::string& id) = 0;
  // Forgets an exited container: its record and its writable layer. Errors: conflict while it runs.
  virtual Result<void> remove_container(const std::string& sandbox_id, const std::string& id) = 0;
  virtual Result<std::unique_ptr<Exec>> exec(const std::string& sandbox_id, const std::string& id, const ExecSpec& spec) = 0;
  // Follows the container's own output from now on, beside its log, and its input when it was opened and is asked for.
  // wait() ends with the container; destroying it only lets go. Errors: not_found, conflict when it does not run.
  virtual Result<std::unique_ptr<Exec>> attach(const std::string& sandbox_id, const std::string& id, bool use_stdin) = 0;
  // Of a container that runs; "" = of the whole sandbox. Errors: not_found.
  virtual Result<Usage> usage(const std::string& sandbox_id, const std::string& container_id) = 0;
  // The directory on the disk that holds what the container has changed of its image, whether or not it runs: for measuring it;
  // hostile. Errors: not_found, also for a container without an image.
  virtual Result<Fd> writable_layer(const std::string& sandbox_id, const std::string& id) = 0;
  // The container's root as its processes see it, for probing files and copying; hostile. Errors: not_found.
  virtual Result<Fd> container_root(const std::string& sandbox_id, const std::string& id) = 0;
};

struct RegistrySettings {
  std::vector<std::string> insecure;                        // host[:port] spoken to over http, or without verifying
  std::map<std::string, std::vector<std::string>> mirrors;  // registry or "*" → base URLs tried first
};

struct Config {
  std::string state_dir;      // /var/lib/coracle/runtime: images, snapshots, records
  std::string run_dir;        // /run/coracle: sockets
  std::string pause_program;  // coracle-pause
  std::string image_program;  // coracle-image
  std::string cgroup_root;    // a cgroup v2 directory of ours, delegated; "" = found
  std::string cgroup_unit;    // … here, where it is there: system.slice/coracle-pods.service; else at the top
  std::function<RegistrySettings()> registries;  // asked before each pull, from any thread; absent: none
};

// Opens the state, finds what runs, prepares the cgroup. Errors: with the step named.
Result<std::unique_ptr<Runtime>> open(const Config& config);
// The specification's defaults for a container: mounts, masked and read-only paths, Docker's 14 capabilities, devices.
oci::Spec default_spec();
// The RuntimeDefault seccomp profile, as the specification's object.
const json::value& default_seccomp();

}  // namespace coracle::runtime
