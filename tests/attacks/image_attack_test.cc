// SPDX-License-Identifier: Apache-2.0
// Attacks by images: the effect of an untrusted layer, configuration, index or account file on the machine that imports and runs
// it. advisories.tsv lists the advisories.
#include <grp.h>

#include "tests/attacks/attack_fixture.h"
#include "tests/runtime/image/builder.h"

namespace coracle::attacks {
namespace {

using image::test::Entry;
using image::test::make_tar;
using image::test::TestImage;

class ImageAttack : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = LiveRuntime::missing(); !why.empty()) GTEST_SKIP() << why;
    fixture_ = std::make_unique<LiveRuntime>();
    fixture_->config.image_program = CORACLE_IMAGE;
    auto opened = runtime::open(fixture_->config);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    runtime_ = std::move(*opened);
    SandboxSpec pod;
    pod.id = "pod";
    ASSERT_OK(runtime_->create_sandbox(pod));
    MUST(sys::make_directories(host() + "/etc"));
    write_text(host() + "/secret", "the host's secret\n", 0600);
    write_text(host() + "/etc/passwd", "web:x:1:1::/:\n");
    before_ = tree_of(host());
  }
  void TearDown() override {
    if (!fixture_) return;
    EXPECT_EQ(tree_of(host()), before_) << "the host was touched";
    if (runtime_) (void)runtime_->remove_sandbox("pod");
    runtime_.reset();
  }
  std::string host() const { return fixture_->path() + "/host"; }
  std::string climb() const { return "../../../../../../../.." + host(); }

  Result<std::vector<runtime::Image>> import(const std::string& archive, const std::string& name = "") {
    write_text(fixture_->path() + "/archive", archive);
    Fd fd = MUST(sys::open(fixture_->path() + "/archive", O_RDONLY));
    return runtime_->images().import(fd, name);
  }
  // An image with a shell and the given entries.
  TestImage shell_with(std::vector<Entry> entries, const std::string& config = R"({"Cmd":["/bin/sh"]})") {
    std::vector<Entry> all = {{"bin", 'd', "", 0755}, {"bin/busybox", 'f', read_text(fixture_->rootfs() + "/bin/busybox"), 0755}};
    for (const char* name : {"sh", "cat", "ls", "echo", "id"}) all.push_back({std::string("bin/") + name, 'l', "busybox"});
    all.insert(all.end(), entries.begin(), entries.end());
    TestImage out{{{make_tar(all)}}};
    out.config = config;
    return out;
  }
  runtime::Image add(const TestImage& image, const std::string& name = "localhost/evil:1") {
    auto got = import(image::test::archive_of(image::test::oci_layout(image, name)));
    EXPECT_TRUE(got.ok()) << got.error().text();
    return got ? got->front() : runtime::Image{};
  }
  Outcome run(const runtime::Image& image, const std::string& command) {
    ContainerSpec spec = fixture_->shell("app-0", command);
    spec.image_id = image.id;
    spec.spec.root.path.clear();
    Outcome out;
    (void)sys::unlink(spec.log.path);
    auto started = runtime_->start_container("pod", spec);
    if (!started) {
      out.refusal = started.error().text();
      return out;
    }
    for (int i = 0; i < 60'000 && out.code < 0; ++i) {
      auto state = runtime_->sandbox("pod");
      for (auto& container : state->containers)
        if (container.exit) out.code = container.exit->exit_code;
      ::usleep(1000);
    }
    out.out = fixture_->output("app-0") + fixture_->output("app-0", "stderr");
    EXPECT_TRUE(runtime_->remove_container("pod", "app-0").ok());
    return out;
  }
  std::unique_ptr<LiveRuntime> fixture_;
  std::unique_ptr<runtime::Runtime> runtime_;

 private:
  std::string before_;
};

// CVE-2025-47290: a directory that was checked once becomes a link, and later entries go through it. (CVE-2021-32760,
// CVE-2021-29136: Unpack.links_lead_about_inside_but_never_out.)
TEST_F(ImageAttack, a_directory_that_becomes_a_link_leads_nowhere) {
  for (const std::string& target : {host(), climb()}) {
    struct Row {
      const char* name;
      std::vector<Entry> entries;
    };
    for (const Row& row : {
             Row{"within a layer",
                 {{"d", 'd'}, {"d/a", 'f', "a"}, {"d", 'l', target}, {"d/secret", 'f', "evil"}, {"d/made", 'f', "evil"}}},
             Row{"its parent",
                 {{"d/e", 'd'}, {"d/e/a", 'f'}, {"d", 'l', target}, {"d/etc/made", 'f', "evil"}, {"d/etc", 'd', "", 0777}}},
             Row{"by a hard link", {{"d", 'd'}, {"d/a", 'f'}, {"l", 'l', target}, {"d", 'h', "l"}, {"d/secret", 'f', "evil"}}},
             Row{"again and again",
                 {{"d", 'd'},
                  {"d", 'l', target},
                  {"d", 'd'},
                  {"d/x", 'f'},
                  {"d", 'l', target},
                  {"d/secret", 'f', "evil", 04777}}},
             Row{"modes and owners", {{"d", 'd'}, {"d/a", 'f'}, {"d", 'l', target}, {"d/secret", 'd', "", 0777, 1000, 1000}}},
             Row{"taken away", {{"d", 'd'}, {"d/a", 'f'}, {"d", 'l', target}, {"d/.wh.secret", 'f'}, {"d/.wh..wh..opq", 'f'}}},
         }) {
      (void)import(image::test::archive_of(image::test::oci_layout({{{make_tar(row.entries)}}}, "localhost/one:1")));
      EXPECT_EQ(read_text(host() + "/secret"), "the host's secret\n") << row.name;
      // … and with the link in the layer below.
      std::vector<Entry> link = {{"d", 'l', target}};
      (void)import(
          image::test::archive_of(image::test::oci_layout({{{make_tar(link)}, {make_tar(row.entries)}}}, "localhost/two:1")));
      EXPECT_EQ(read_text(host() + "/secret"), "the host's secret\n") << row.name;
    }
  }
}

// CVE-2022-23648: for a volume in the image's configuration, data is copied from the path's target on the host.
TEST_F(ImageAttack, a_volume_of_the_image_copies_nothing) {
  auto image = add(shell_with({{"data", 'l', climb()}}, R"({"Cmd":["/bin/sh"],"Volumes":{"/data":{},"/../../..)" + host() +
                                                            R"(":{},"..)" + host() + R"(":{},"/proc/1/root":{}}})"));
  Outcome got = run(image, "cat /data/secret " + host() + "/secret; ls /; true");
  EXPECT_EQ(got.out.find("the host's secret"), got.out.npos) << got.refusal << got.out;
  EXPECT_EQ(got.code, 0) << got.refusal << got.out;
  for (const auto& entry :
       fs::recursive_directory_iterator(fixture_->config.state_dir, fs::directory_options::skip_permission_denied))
    EXPECT_TRUE(!entry.is_regular_file() || read_text(entry.path()).find("the host's secret") == std::string::npos)
        << entry.path();
}

// CVE-2021-41103, CVE-2021-41091, CVE-2024-25621: programs of images, including setuid ones, are accessible to every user of the
// machine.
TEST_F(ImageAttack, files_of_images_are_out_of_the_users_reach) {
  auto image = add(shell_with({{"su", 'f', "#!", 04755}}));
  ContainerSpec spec = fixture_->shell("app-0", "echo up; cat");
  spec.image_id = image.id;
  spec.open_stdin = true;
  ASSERT_OK(runtime_->start_container("pod", spec));
  fixture_->wait_log("app-0", "up");
  ASSERT_EQ(::chmod(fixture_->path().c_str(), 0755), 0);  // so that only the runtime's own directories deny access
  size_t looked = 0;
  for (const std::string& top : {fixture_->config.state_dir, fixture_->config.run_dir}) {
    struct stat info {};
    ASSERT_EQ(::stat(top.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 077, 0u) << top;
    std::vector<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(top)) all.push_back(entry.path());
    looked += all.size();
    pid_t child = ::fork();
    if (child == 0) {
      bool is_out = ::setgroups(0, nullptr) == 0 && ::setgid(65534) == 0 && ::setuid(65534) == 0;
      for (const std::string& path : all)
        if (::access(path.c_str(), F_OK) == 0) is_out = false;
      ::_exit(is_out ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 0) << "somebody else sees into " << top;
  }
  EXPECT_GT(looked, 5u);
  (void)runtime_->kill_container("pod", "app-0");
}

// CVE-2024-9676, CVE-2025-4437, CVE-2026-47262: account files that are links to the host, never end, or fill the memory.
TEST_F(ImageAttack, account_files_are_read_with_care) {
  struct Row {
    const char* name;
    std::vector<Entry> entries;
    Code want;
  };
  std::string huge = "web:x:1:1::/:\n", groups;
  huge += std::string(3 << 20, 'x');
  for (int i = 0; i < 300000; ++i) groups += "g" + std::to_string(i) + ":x:" + std::to_string(i) + ":web\n";
  for (const Row& row : {
           Row{"a link to the host", {{"etc/passwd", 'l', climb() + "/etc/passwd"}}, Code::invalid},
           Row{"its directory is one", {{"etc", 'l', climb() + "/etc"}}, Code::invalid},
           Row{"a pipe without a writer", {{"etc/passwd", 'p'}}, Code::invalid},
           Row{"a device without an end", {{"etc/passwd", 'c', "", 0644, 0, 0, 0, {}, 1, 5}}, Code::invalid},
           Row{"3 MiB", {{"etc/passwd", 'f', huge}}, Code::too_large},
           Row{"a group file of 6 MiB", {{"etc/passwd", 'f', "web:x:33:34::/:\n"}, {"etc/group", 'f', groups}}, Code::too_large},
           Row{"a group file that is a pipe", {{"etc/passwd", 'f', "web:x:33:34::/:\n"}, {"etc/group", 'p'}}, Code::invalid},
       }) {
    auto image = add({{{make_tar(row.entries)}}});
    EXPECT_CODE(runtime_->images().resolve_user(image, "web"), row.want);
  }
  std::string many;
  for (int i = 0; i < 20000; ++i) many += "g" + std::to_string(i) + ":x:" + std::to_string(i) + ":web\n";
  auto image = add({{{make_tar({{"etc/passwd", 'f', "web:x:33:34::/:\n"}, {"etc/group", 'f', many}})}}});
  auto user = runtime_->images().resolve_user(image, "web");
  ASSERT_TRUE(user.ok()) << user.error().text();
  EXPECT_LE(user->additional_gids.size(), 1024u);
}

// CVE-2024-40635, CVE-2026-46680: an id that is too large becomes 0, or the image maps a name to 0.
TEST_F(ImageAttack, a_number_is_never_a_name) {
  auto image = add({{{make_tar({{"etc/passwd", 'f',
                                 "2147483648:x:0:0::/:\n4294967296:x:0:0::/:\n99999999999999999999:x:0:0::/:\n-1:x:0:0::/:\n"
                                 "007:x:0:0::/:\n0x0:x:0:0::/:\n1000:x:0:0::/:\n"},
                                {"etc/group", 'f', "4294967296:x:0:\n1000:x:0:\n"}})}}});
  for (const char* user : {"2147483648", "4294967295", "4294967296", "99999999999999999999", "1:4294967296", "1:2147483648"})
    EXPECT_CODE(runtime_->images().resolve_user(image, user), Code::invalid);
  auto named = runtime_->images().resolve_user(image, "1000:1000");
  ASSERT_TRUE(named.ok()) << named.error().text();
  EXPECT_EQ(named->uid, 1000u);
  EXPECT_EQ(named->gid, 1000u);
  auto zeros = runtime_->images().resolve_user(image, "007");
  EXPECT_TRUE(!zeros || zeros->uid == 7) << zeros->uid;
}

// CVE-2026-53488: a label of the image's configuration becomes a runtime option: a logger that runs as root.
TEST_F(ImageAttack, labels_are_no_orders) {
  auto image = add(shell_with({{"logger", 'f', "#!/bin/sh\ntouch " + host() + "/made\n", 0755}},
                              R"({"Cmd":["/bin/sh"],"Labels":{"containerd.io/restart.loguri":"binary:///bin/touch?)" + host() +
                                  R"(/made","containerd.io/restart.status":"running","containerd.io/restart.policy":"always",)"
                                  R"("io.cri-containerd.kind":"sandbox","io.kubernetes.cri-o.UnifiedCgroup":"pids.max=max",)"
                                  R"("org.systemd.property.ExecStartPre":"/bin/touch )" +
                                  host() +
                                  R"(/made","run.oci.keep_original_groups":"1",)"
                                  R"("coracle.io/privileged":"true","io.coracle.log":"/bin/touch"}})"));
  Outcome got = run(image, "id -u; ls /; echo hello");
  EXPECT_EQ(got.code, 0) << got.refusal;
  EXPECT_NE(fixture_->log("app-0").find("hello"), std::string::npos);
  EXPECT_FALSE(fs::exists(host() + "/made"));
}

// CVE-2023-25153: an index, a manifest or a configuration of unlimited size.
TEST_F(ImageAttack, documents_have_limits) {
  const TestImage small{{{make_tar({{"a"}})}}};
  for (bool is_docker : {false, true}) {
    const std::string name = "localhost/big:1";
    auto files = is_docker ? image::test::docker_layout(small, name) : image::test::oci_layout(small, name);
    files[is_docker ? "manifest.json" : "index.json"].insert(0, std::string(40 << 20, ' '));
    EXPECT_CODE(import(image::test::archive_of(files, image::test::Packing::gzip)), Code::too_large);
  }
  TestImage image{{{make_tar({{"a"}})}}};
  image.config = R"({"Env":["A=)" + std::string(20 << 20, 'x') + R"("]})";
  EXPECT_CODE(import(image::test::archive_of(image::test::oci_layout(image, "localhost/big:1"))), Code::too_large);
  EXPECT_TRUE(runtime_->images().list().empty());
}

// CVE-2024-3727: an invalid digest is joined to a path.
TEST_F(ImageAttack, a_digest_is_no_path) {
  for (const std::string& digest :
       {"sha256:../../../../../.." + host() + "/secret", "../../.." + host() + ":secret", std::string("sha256:"),
        "sha256:" + std::string(63, 'a') + "/", std::string("sha512:../../x"), "sha256:" + std::string(64, '.')}) {
    const std::string descriptor =
        R"({"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":")" + digest + R"(","size":18})";
    auto files = image::test::oci_layout({{{make_tar({{"a"}})}}}, "localhost/x:1");
    files["index.json"] = R"({"schemaVersion":2,"manifests":[)" + descriptor + "]}";
    auto got = import(image::test::archive_of(files));
    EXPECT_CODE(got, Code::invalid);
    EXPECT_TRUE(got || got.error().text().find("the host's secret") == std::string::npos);
    EXPECT_FALSE(runtime_->images().find(digest).ok());
    EXPECT_FALSE(runtime_->images().find("localhost/x@" + digest).ok());
    EXPECT_FALSE(runtime_->images().remove(digest).ok());
  }
}

// CVE-2026-50195, CVE-2026-53489, CVE-2026-53492, CVE-2024-8676: an image that looks like a checkpoint is restored: its log is a
// link, its description adds devices, its name becomes a tag.
TEST_F(ImageAttack, a_checkpoint_is_an_image_like_any_other) {
  auto layout = image::test::oci_layout(
      shell_with(
          {{"container.log", 'l', climb() + "/secret"},
           {"config.dump", 'f', R"({"id":"x","rootfsImageName":"docker.io/library/nginx:latest"})"},
           {"spec.dump", 'f',
            R"({"annotations":{"cdi.k8s.io/x":"vendor.com/device=all"},"mounts":[{"destination":"/host","source":"/","type":"bind"}]})"},
           {"checkpoint", 'd'},
           {"rootfs-diff.tar", 'f', make_tar({{"../../../made", 'f', "x"}})}}),
      "localhost/checkpoint:1");
  for (auto& [name, text] : layout)
    if (size_t at = text.find("\"manifests\":["); name == "index.json" && at != text.npos)
      text.insert(
          text.rfind('}'),
          R"(,"annotations":{"org.criu.checkpoint.container.name":"x","io.kubernetes.cri-o.annotations.checkpoint.name":"x"})");
  auto got = import(image::test::archive_of(layout));
  ASSERT_TRUE(got.ok()) << got.error().text();
  auto all = runtime_->images().list();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].references, (std::vector<std::string>{"localhost/checkpoint:1"}));
  EXPECT_FALSE(runtime_->images().find("docker.io/library/nginx:latest").ok());
  Outcome ran = run(got->front(), "echo mine; ls /host; cat /container.log; true");
  EXPECT_NE(ran.out.find("mine\n"), ran.out.npos) << ran.refusal;
  EXPECT_EQ(ran.out.find("the host's secret"), ran.out.npos) << ran.out;
  EXPECT_EQ(fixture_->log("app-0").find("the host's secret"), std::string::npos);
  EXPECT_NE(ran.out.find("/host: No such file"), ran.out.npos) << ran.out;
}

}  // namespace
}  // namespace coracle::attacks
