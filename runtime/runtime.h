// SPDX-License-Identifier: Apache-2.0
// Runtime: the interface between the node agent and Linux. It manages sandboxes (a pod's shared namespaces, cgroup and
// coracle-pause), their containers and exits, and images. It implements OCI and uses the kernel; it does not depend on
// Kubernetes. The agent stores what it needs after a restart in `metadata`, which the runtime keeps and never reads.
//
// The daemon plans and coracle-pause launches: a sandbox and its containers survive the end of the daemon, and a new Runtime with
// the same state directory finds them with all exit codes and log lines. All calls are thread-safe; calls on one sandbox are
// serialised. Two implementations pass the same contract tests: the real one and the fake for tests.
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
  std::string id;                       // "sha256:…" of its configuration
  std::vector<std::string> references;  // "docker.io/library/nginx:1.27", its tags here
  std::vector<std::string> digests;     // "docker.io/library/nginx@sha256:…" as pulled
  Bytes size;                           // unpacked
  WallTime created;
  ImageConfig config;
  std::string platform;       // for which it was built, if the image contains it: "linux/arm64"
  std::string other_machine;  // this machine's, "linux/amd64", if the image is for another platform; otherwise ""
};

struct Credentials {
  std::string registry;  // host[:port][/path prefix]; as in a docker config.json
  std::string username, password, identity_token;
  std::string source;  // the caller's name for their origin; stored with an image that was pulled with them, and compared
  bool operator==(const Credentials&) const = default;
};

// What earlier pulls tell about the right to use an image that is already here. Source: KEP-2535.
enum class ImageAccess : uint8_t {
  preloaded,  // never pulled under this name: it was imported, or is older than these records
  proven,     // the registry gave it without credentials, or for one of these credentials
  unproven,   // unknown: it must be pulled
};

struct PullProgress {
  Bytes done, total;  // bytes transferred of all layers; total is 0 until known
  int layers_done = 0, layers_total = 0;
};

// The reason (ErrorDetails) of a failed pull if no server could be reached, a connection broke, or the servers failed themselves
// (status 500 and above). Not of other failures whose code is unavailable too: a full disk, too little memory.
constexpr const char* kRegistryUnreachable = "RegistryUnreachable";
inline bool is_registry_unreachable(const Error& error) {
  return error.details() && error.details()->reason == kRegistryUnreachable;
}

struct Removal {                   // the result of removing a name or an image
  Image image;                     // before the removal, or what is left of it
  bool deleted = false;            // with its content; false: it has other names
  std::vector<std::string> users;  // what still uses it: containers as "<sandbox>.<container>", and holders (mount)
};

class ImageStore {
 public:
  virtual ~ImageStore() = default;
  virtual std::vector<Image> list() = 0;
  // Finds an image by reference ("nginx", "nginx:1.27", "localhost/x@sha256:…", normalised as docker does) or by id. Errors:
  // not_found; invalid for a malformed reference.
  virtual Result<Image> find(std::string_view reference) = 0;
  // Blocks until the image is complete and synced to the disk. An interrupted pull leaves nothing incomplete, and the next one
  // resumes it. `progress` may be null. Errors: not_found, unauthorized, unavailable (network: is_registry_unreachable; disk),
  // invalid (digest or format).
  virtual Result<Image> pull(std::string_view reference, const std::vector<Credentials>& credentials,
                             const std::function<void(const PullProgress&)>& progress, std::stop_token stop) = 0;
  // Whether the owner of these credentials may use an image that find() returned for this reference, as far as earlier pulls
  // tell. Records credentials that equal those of an earlier pull with another source, or that have its source but another
  // password.
  virtual ImageAccess access(const Image& image, std::string_view reference, const std::vector<Credentials>& credentials) = 0;
  // Reads an OCI or docker archive (plain, or compressed with gzip, zstd, xz, bzip2 or lz4) from `archive` to its end. `name`:
  // for an image without a name, or to override it. Returns the images. Errors: invalid, too_large, cancelled.
  virtual Result<std::vector<Image>> import(const Fd& archive, std::string_view name, std::stop_token stop = {}) = 0;
  // Writes an OCI archive of local images to `archive` (may be a pipe). An image given by a tag gets that name in it, others all
  // their tags. Layers are rebuilt from their unpacked form: a pulled image usually has another id in the archive, which is the
  // same on every machine. Blocks until everything is written. Errors: not_found, invalid; errno's.
  virtual Result<void> write_archive(const std::vector<std::string>& references, const Fd& archive) = 0;
  // Removes a name or, by its id (or at least its first six digits), a whole image. The content is deleted with the last name.
  // Errors: not_found; invalid if several ids match; conflict if a container uses content that would be deleted.
  virtual Result<Removal> remove(std::string_view reference) = 0;
  // Gives a local image another name, which is taken from any other image. Everybody may use it under that name, as an imported
  // one. Errors: not_found, invalid.
  virtual Result<Image> tag(std::string_view reference, std::string_view name) = 0;
  // Removes unused images: those without a tag, or with `all` every one. Returns them.
  virtual Result<std::vector<Image>> prune(bool all) = 0;
  // Removes images that were pulled and that nothing has used for `least`, the longest unused first; `is_enough` is asked before
  // each. Images that no registry has given under each of their names stay: imported or packed ones, and those that got a name
  // here (tag). Without a record of their use, they count as used when the store was opened. Returns the removed ones. Blocks.
  virtual Result<std::vector<Image>> collect(std::chrono::seconds least, const std::function<bool()>& is_enough) = 0;
  // uid, gid and groups for "user[:group]" (names or numbers) from the image's /etc/passwd and /etc/group, which are untrusted.
  // Errors: invalid for an unknown name or a number out of range.
  virtual Result<oci::User> resolve_user(const Image& image, std::string_view user) = 0;
  // Mounts the files of a local image on a directory of the host: read-only, noexec and nodev. The image cannot be removed until
  // release(), also across restarts. `holder`: [a-zA-Z0-9][a-zA-Z0-9_.-]*, at most 200 characters, different from every
  // snapshot's name; a holder of another image releases that. `ids`: maps the owners to host ids. Errors: not_found; unsupported
  // if the kernel or file system has no id-mapped mounts; the kernel's.
  virtual Result<void> mount(const std::string& image_id, const std::string& holder, const std::string& directory,
                             const std::vector<oci::IdMapping>& ids) = 0;
  // Releases the image of mount() after the caller has unmounted it. It is no error if there is none.
  virtual Result<void> release(const std::string& holder) = 0;
};

// ---- directory trees ----

struct TreeCount {
  int64_t entries = 0;
  Bytes bytes;  // of the files' lengths
};
using TreeProgress = std::function<void(const TreeCount& done)>;

// Directory trees that containers control, as archives and copies. Each call runs in a confined process that can only access the
// descriptors. For every entry it keeps: type, mode, owners, modification time, attributes (user.*, file capabilities, POSIX
// ACLs), hard links, and the holes of files. Sockets and mounts in the tree are skipped.
class Trees {
 public:
  virtual ~Trees() = default;
  // Writes the contents of `directory` to `archive` (may be a pipe) as a tar stream (pax) compressed with zstd. Blocks.
  // `progress` may be null. Errors: conflict if a file shrinks while it is read; cancelled; errno's.
  virtual Result<TreeCount> write(const Fd& directory, const Fd& archive, const TreeProgress& progress, std::stop_token stop) = 0;
  // Unpacks an archive into an empty directory and syncs it; after an error the directory is incomplete. Also accepts the
  // compressions of image archives. Blocks. Errors: invalid for a malformed archive or one that leads out of the directory;
  // cancelled; errno's (ENOSPC, EDQUOT).
  virtual Result<TreeCount> read(const Fd& archive, const Fd& directory, const TreeProgress& progress, std::stop_token stop) = 0;
  // Copies a tree into an empty directory and syncs it; after an error the directory is incomplete. Shares the blocks of files if
  // the file system supports it. Blocks. Errors as above.
  virtual Result<TreeCount> copy(const Fd& from, const Fd& to, const TreeProgress& progress, std::stop_token stop) = 0;
};

// ---- sandboxes and containers ----

constexpr int kSandboxContainersMax = 512;  // containers of one sandbox, including ended ones that were not removed

struct SandboxSpec {
  std::string id;        // [a-z0-9-]{1,64}; a pod's uid
  std::string metadata;  // the caller's, returned unchanged
  std::string hostname;
  bool host_network = false, host_ipc = false, host_pid = false, share_process_namespace = false;
  // The id maps of a new user namespace, which owns the sandbox's network, ipc and uts namespaces. Empty: the host's user
  // namespace. The container's root must be mapped, and the pod may share no namespace with the host.
  std::vector<oci::IdMapping> uid_mappings, gid_mappings;
  std::map<std::string, std::string> sysctl;
  oci::Resources resources;  // of the pod
  std::string cgroup_class;  // "guaranteed", "burstable", "besteffort": the parent cgroup of the pod's
};

// CRI log lines: <time> <stream> <F|P> <content>. A full file is renamed to <path>.1, <path>.1 to <path>.2, and so on up to
// <path>.<files - 1>.
struct LogPolicy {   // Source: KEP-1819, kubelet cri-api logging
  std::string path;  // "": no log; its directory must exist
  Bytes rotate_at{10 << 20};
  int files = 5;
};

struct ContainerSpec {
  std::string id;        // unique in its sandbox, [a-zA-Z0-9_.-]{1,128}; the agent uses "<name>-<restart count>"
  std::string metadata;  // the caller's
  std::string image_id;  // "sha256:…": the root is an overlay over it; "": spec.root.path
  oci::Spec spec;        // namespaces that are not listed come from the sandbox (network, ipc, uts) or are new (pid, mount)
  LogPolicy log;
  bool open_stdin = false;  // false: /dev/null
  bool stdin_once = false;  // the first attach with input has it exclusively, and the container's stdin is closed at its end
  // The process's 0, 1 and 2, if the caller reads them; then no log is written. Null: pause reads them.
  std::shared_ptr<const std::array<Fd, 3>> streams;
  std::string stop_signal = "SIGTERM";
  std::string target;  // joins the pid namespace of this running container of the sandbox, and ends with its first process
};

struct ExitStatus {
  int exit_code = 0;  // 128 + signal if killed by one
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
  bool alive = false;  // pause is running; false after a reboot or if pause was killed: then only remove_sandbox is possible
  int pid = 0;
  WallTime created;
  std::vector<ContainerState> containers;
};

struct ExecSpec {
  std::vector<std::string> args;
  std::optional<std::vector<std::string>> env;  // absent: the container's
  bool terminal = false;
  uint16_t width = 0, height = 0;
  bool use_stdin = false;
  std::vector<std::string> extra_env;                // added to env
  std::string cwd;                                   // "": the container's
  std::shared_ptr<const std::array<Fd, 3>> streams;  // the process's 0, 1 and 2, instead of pipes
};

// A process executed in a container. The caller reads and writes its descriptors. The destructor kills the process if it is still
// running.
class Exec {
 public:
  virtual ~Exec() = default;
  virtual Fd take_stdin() = 0;  // invalid if not requested; with a terminal: its master, used for all three
  virtual Fd take_stdout() = 0;
  virtual Fd take_stderr() = 0;
  virtual Result<void> resize(uint16_t width, uint16_t height) = 0;  // in character cells. Errors: invalid without a terminal
  virtual Result<int> wait(std::stop_token stop) = 0;                // blocks; exit code, 128 + signal. Errors: cancelled
};

struct Usage {
  std::chrono::nanoseconds cpu{0};
  // Without the memory controller, both are the sum of the processes' proportional set sizes, without the page cache.
  Bytes memory, memory_working_set;
  int64_t processes = 0;
};

// The limits that this machine can enforce. `missing` is a sentence about the reason and the remedy, "" if all are.
struct Enforcement {
  bool memory = false, cpu = false, pids = false, io = false, cpuset = false;
  std::string missing;
};

// Thread-safe. Operations on one sandbox take turns, and block while coracle-pause works for it; reading its state does not wait
// for them. Errors of all functions that name a sandbox or a container, beside those stated: not_found if there is none; the
// kernel's, with the step.
class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual ImageStore& images() = 0;
  virtual Trees& trees() = 0;
  virtual Enforcement enforcement() const = 0;
  // The directory, in cgroup v2, of the cgroups of all sandboxes. "": there is none.
  virtual std::string pods_cgroup() const { return {}; }
  // The current memory limit of all pods together. Nothing: no limit, or none that is enforced.
  virtual std::optional<Bytes> memory_bound() const = 0;

  // Called with the id of a sandbox whose state has changed: an exit, an OOM kill, the end of pause. May be called from any
  // thread, also for changes that the caller caused; must not block. Set it before the first sandbox is created.
  virtual void on_change(std::function<void(const std::string& sandbox_id)> notify) = 0;

  // All sandboxes, including those from before a restart. Does not block for long.
  virtual Result<std::vector<SandboxState>> sandboxes() = 0;
  virtual Result<SandboxState> sandbox(const std::string& id) = 0;

  // Creates the namespaces, the cgroup and pause; the network namespace has only loopback, up. Errors: already_exists, and the
  // kernel's with the step; after an error nothing is left behind.
  virtual Result<void> create_sandbox(const SandboxSpec& spec) = 0;
  virtual Result<Fd> network_namespace(const std::string& id) = 0;
  // Kills the remaining processes (SIGKILL) and removes cgroup, mounts and records. It is no error if the sandbox does not exist.
  // The log files stay.
  virtual Result<void> remove_sandbox(const std::string& id) = 0;
  // Sets the cpu.weight (1 to 10000) of a class's cgroup, which is its share of CPU time against other classes. Does nothing if
  // enforcement().cpu is false. Errors: invalid for a malformed class.
  virtual Result<void> set_class_weight(const std::string& cgroup_class, uint64_t weight) = 0;

  // Returns when the container's program has been executed, or fails with the step and leaves nothing behind. Errors: invalid or
  // not_found for a wrong specification (no such program: worded as runc does); conflict if the id is in use.
  virtual Result<void> start_container(const std::string& sandbox_id, const ContainerSpec& spec) = 0;
  // Signals the container's first process. Succeeds if the container has ended.
  virtual Result<void> signal_container(const std::string& sandbox_id, const std::string& id, int signal) = 0;
  // Sends SIGKILL to all processes in the container's cgroup.
  virtual Result<void> kill_container(const std::string& sandbox_id, const std::string& id) = 0;
  // Removes an exited container: its record and its writable layer. Errors: conflict while it runs.
  virtual Result<void> remove_container(const std::string& sandbox_id, const std::string& id) = 0;
  // Returns when the program has been executed. Errors: as start_container(); conflict if the container is not running.
  virtual Result<std::unique_ptr<Exec>> exec(const std::string& sandbox_id, const std::string& id, const ExecSpec& spec) = 0;
  // Receives the container's output from now on, in addition to its log, and writes its input if that was opened and is
  // requested. wait() returns when the container ends; the destructor only detaches. Errors: not_found; conflict if it is not
  // running.
  virtual Result<std::unique_ptr<Exec>> attach(const std::string& sandbox_id, const std::string& id, bool use_stdin) = 0;
  // Of a running container; "": of the whole sandbox. Errors: not_found.
  virtual Result<Usage> usage(const std::string& sandbox_id, const std::string& container_id) = 0;
  // The directory of the container's writable layer, running or not: for measuring its size; untrusted. Errors: not_found, also
  // for a container without an image.
  virtual Result<Fd> writable_layer(const std::string& sandbox_id, const std::string& id) = 0;
  // The container's root as its processes see it, for probes of files and for copying; untrusted. Errors: not_found.
  virtual Result<Fd> container_root(const std::string& sandbox_id, const std::string& id) = 0;
};

struct RegistryTls {                     // texts in PEM; "": none
  std::string authorities;               // accepted beside the machine's
  std::string certificate, private_key;  // the client's
};

struct RegistryHost {
  bool verify = true;  // the server's certificate
  RegistryTls tls;
  Credentials credentials;  // the machine's own, with registry = this host: images that they bring are for all. registry "": none
  std::string refused = {};  // why these settings are not known: what would ask this host fails with the text. "": they are
};

// For the names of repositories on mirrors. A pattern is a POSIX extended regular expression, which matches anywhere; in the
// replacement $1 to $9 are its groups. Source: k3s, registries.yaml.
struct RegistryRewrite {
  std::string pattern, replacement;
};

// A server that has a registry's images. Source: containerd, docs/hosts.md.
struct RegistryServer {
  std::string url;     // where the API is: "https://host/v2". "": the registry itself
  bool verify = true;  // its certificate
  RegistryTls tls = {};
  bool resolves = true;                   // false: it is asked only for what is named by a digest, not for tags
  std::vector<std::string> headers = {};  // "Name: value": sent to it alone
};

struct RegistrySettings {
  std::vector<std::string> insecure;  // host[:port] to use with http, or without verifying the certificate
  // registry or "*" → URLs to try first: of a host, whose API is at /v2, or with the path of the API.
  std::map<std::string, std::vector<std::string>> mirrors;
  std::map<std::string, RegistryHost> hosts;  // host[:port] of a registry or mirror, or "*" for those without
  std::map<std::string, std::vector<RegistryRewrite>>
      rewrites;  // registry or "*" → for its mirrors; the first that changes a name
  // registry or "*" → the servers to ask, in this order, and no others: neither mirrors nor, unless listed, the registry itself.
  std::map<std::string, std::vector<RegistryServer>> servers;
  // registry or "*" → why its mirrors or servers are not known: a pull goes no other way, it fails with the text.
  std::map<std::string, std::string> refused;
  std::string refused_all;  // the same for all registries; "": none
};

struct Config {
  std::string state_dir;      // /var/lib/coracle/runtime: images, snapshots, records
  std::string run_dir;        // /run/coracle: sockets
  std::string pause_program;  // coracle-pause
  std::string image_program;  // coracle-image
  std::string cgroup_root;    // a delegated cgroup v2 directory; "": found
  std::string cgroup_unit;    // if that is "": this cgroup if it exists, system.slice/coracle-pods.service; otherwise at the top
  std::function<RegistrySettings()> registries;  // called before each pull, from any thread; absent: none
};

// Opens the state, finds the running sandboxes and prepares the cgroup. Errors: with the step.
Result<std::unique_ptr<Runtime>> open(const Config& config);
// The default specification of a container: mounts, masked and read-only paths, Docker's 14 capabilities, devices.
oci::Spec default_spec();
// The RuntimeDefault seccomp profile, as the specification's object.
const json::value& default_seccomp();

}  // namespace coracle::runtime
