// SPDX-License-Identifier: Apache-2.0
// Writes a container's output as log lines: "<time> <stdout|stderr> <F|P> <content>". A line ends at its newline (F). A line
// longer than kLineMax is written in parts (P, the last one F). Text without a newline at the end of the stream is a part (P),
// which readers print without a newline. A full file is renamed to .1, .1 to .2, and so on. Attached clients receive the same
// bytes unformatted. The container waits for an attached client that reads slowly, but not for one that has disconnected.
//   pipe ─▶ read buffer ─▶ lines ─▶ writev ─▶ file
//                  └─ an unfinished line is kept in the stream's own buffer
// Source: KEP-1819's format as kubelet and CRI runtimes use it.
#include "runtime/pause/pod.h"

namespace coracle::pause {

using namespace launch;

namespace {

constexpr size_t kHeadMax = 64;
constexpr int kPartsMax = 192;
constexpr int kReadsPerPass = 8;            // then other descriptors are handled
constexpr size_t kDrainBytesMax = 2 << 20;  // two full pipes of the maximum unprivileged size
constexpr size_t kAttachedReadMax = 4096;   // PIPE_BUF: a writable pipe accepts that much at once

char read_buffer[kReadMax];
char line_buffers[kSlotsMax][2][kLineMax];  // unused pages cost nothing
iovec parts[kPartsMax];
int parts_count;
uint64_t parts_bytes;

char* two_digits(char* to, unsigned value) {
  *to++ = char('0' + value / 10 % 10);
  *to++ = char('0' + value % 10);
  return to;
}

// Source: days-to-civil of the proleptic Gregorian calendar, with 400-year eras that begin on 1 March.
char* write_time(char* to, uint64_t now_ns) {
  const uint64_t seconds = now_ns / 1000000000u;
  unsigned long days = seconds / 86400 + 719468;
  const unsigned long era = days / 146097;
  const unsigned long day_of_era = days - era * 146097;
  const unsigned long year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const unsigned long day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const unsigned long shifted_month = (5 * day_of_year + 2) / 153;
  const unsigned day = unsigned(day_of_year - (153 * shifted_month + 2) / 5 + 1);
  const unsigned month = unsigned(shifted_month < 10 ? shifted_month + 3 : shifted_month - 9);
  const unsigned year = unsigned(year_of_era + era * 400 + (month <= 2));
  const unsigned of_day = unsigned(seconds % 86400);
  to = two_digits(two_digits(to, year / 100), year % 100);
  *to++ = '-';
  to = two_digits(to, month);
  *to++ = '-';
  to = two_digits(to, day);
  *to++ = 'T';
  to = two_digits(to, of_day / 3600);
  *to++ = ':';
  to = two_digits(to, of_day / 60 % 60);
  *to++ = ':';
  to = two_digits(to, of_day % 60);
  *to++ = '.';
  uint64_t rest = now_ns % 1000000000u;
  for (uint64_t unit = 100000000u; unit > 0; unit /= 10) *to++ = char('0' + rest / unit % 10);
  *to++ = 'Z';
  return to;
}

struct Heads {  // the prefixes of a whole line and of a part
  char whole[kHeadMax], part[kHeadMax];
  size_t size;
};

void make_heads(Heads& heads, int which) {
  char* at = write_time(heads.whole, k_now());
  for (const char* text = which ? " stderr F " : " stdout F "; *text; ++text) *at++ = *text;
  heads.size = size_t(at - heads.whole);
  for (size_t i = 0; i < heads.size; ++i) heads.part[i] = heads.whole[i];
  heads.part[heads.size - 2] = 'P';
}

void add_part(const char* at, size_t size) {
  if (size == 0) return;
  parts[parts_count++] = {const_cast<char*>(at), size};
  parts_bytes += size;
}

bool write_parts(Slot& slot) {
  int first = 0;
  while (first < parts_count) {
    long n = k_writev(slot.log, parts + first, parts_count - first);
    if (n == -kEintr) continue;
    if (n <= 0) return false;
    slot.log_bytes += uint64_t(n);
    parts_bytes -= uint64_t(n);
    while (first < parts_count && size_t(n) >= parts[first].iov_len) n -= long(parts[first++].iov_len);
    if (n > 0) {
      parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + n;
      parts[first].iov_len -= size_t(n);
    }
  }
  return true;
}

// name → name.1 → …; rename overwrites the oldest.
void rotate(Slot& slot) {
  char from[kLogNameMax + 8], to[kLogNameMax + 8];
  auto numbered = [&](char* out, unsigned number) {
    copy_text(out, slot.log_name, kLogNameMax);
    if (number == 0) return;
    char* at = out + length(out);
    *at++ = '.';
    if (number >= 100) *at++ = char('0' + number / 100 % 10);
    if (number >= 10) *at++ = char('0' + number / 10 % 10);
    *at++ = char('0' + number % 10);
    *at = 0;
  };
  for (unsigned i = slot.log_files > 1 ? slot.log_files - 1 : 0; i > 0; --i) {
    numbered(from, i - 1);
    numbered(to, i);
    (void)k_renameat(slot.log_directory, from, slot.log_directory, to);  // it may not exist yet
  }
  if (slot.log_files <= 1) (void)k_unlinkat(slot.log_directory, slot.log_name);
  int fresh = k_openat(slot.log_directory, slot.log_name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0640);
  if (fresh < 0) return;  // continue with the old file under its new name
  k_close(slot.log);
  slot.log = fresh;
  slot.log_bytes = 0;
}

void flush(Slot& slot) {
  static const char newline[] = "\n";
  if (parts_count == 0) return;
  if (slot.log >= 0) {
    bool is_clean = true;
    if (slot.is_log_torn) is_clean = k_write(slot.log, newline, 1) == 1;
    slot.is_log_torn = !is_clean || !write_parts(slot);
    if (slot.is_log_torn) slot.log_bytes_lost += parts_bytes;
    if (slot.log_rotate_bytes && slot.log_bytes >= slot.log_rotate_bytes && !slot.is_log_torn) rotate(slot);
  }
  parts_count = 0;
  parts_bytes = 0;
}

void add_line(Slot& slot, const Heads& heads, bool is_whole, const char* held, size_t held_size, const char* rest,
              size_t rest_size) {
  if (parts_count + 4 > kPartsMax) flush(slot);
  add_part(is_whole ? heads.whole : heads.part, heads.size);
  add_part(held, held_size);
  add_part(rest, rest_size);
  add_part("\n", 1);
}

const char* find_newline(const char* at, const char* end) {
  while (at < end && *at != '\n') ++at;
  return at;
}

void log_bytes(int index, int which, const char* at, size_t size) {
  Slot& slot = pod.slots[index];
  Stream& stream = slot.streams[which];
  char* held = line_buffers[index][which];
  Heads heads;
  make_heads(heads, which);
  const char* end = at + size;
  while (at < end) {
    const char* newline = find_newline(at, end);
    const bool has_newline = newline < end;
    const size_t piece = size_t(newline - at), capacity = kLineMax - stream.held;
    if (piece > capacity || (piece == capacity && capacity == 0 && !has_newline)) {  // too long for one line
      add_line(slot, heads, false, held, stream.held, at, capacity);
      at += capacity;
      flush(slot);  // the held bytes are about to be overwritten
      stream.held = 0;
    } else if (has_newline) {
      add_line(slot, heads, true, held, stream.held, at, piece);
      at = newline + 1;
      if (stream.held) flush(slot);
      stream.held = 0;
    } else {
      flush(slot);
      for (size_t i = 0; i < piece; ++i) held[stream.held + i] = at[i];
      stream.held += uint32_t(piece);
      at = end;
    }
  }
  flush(slot);
}

void end_line(int index, int which) {
  Stream& stream = pod.slots[index].streams[which];
  if (stream.held == 0) return;
  Heads heads;
  make_heads(heads, which);
  add_line(pod.slots[index], heads, false, line_buffers[index][which], stream.held, nullptr, 0);
  flush(pod.slots[index]);
  stream.held = 0;
}

int poll_end(int fd, short events) {
  PollFd poll{fd, events, 0};
  return k_poll_now(&poll, 1) > 0 ? poll.revents : 0;
}

enum class Audience { none, ready, slow };

// Detaches clients that have disconnected. Returns whether the others can take kAttachedReadMax bytes.
Audience look_at_audience(Slot& slot, int which) {
  Audience audience = Audience::none;
  for (Attach& attach : slot.attaches) {
    int& end = attach.ends[which];
    if (end < 0) continue;
    int events = poll_end(end, kPollOut);
    if (events & kPollErr) {
      unwatch(end);
    } else if (!(events & kPollOut)) {
      audience = Audience::slow;
    } else if (audience == Audience::none) {
      audience = Audience::ready;
    }
  }
  return audience;
}

void show_audience(Slot& slot, int which, const char* at, size_t size) {
  for (Attach& attach : slot.attaches) {
    int& end = attach.ends[which];
    if (end >= 0 && k_write(end, at, size) != long(size)) unwatch(end);
  }
}

// Stops reading until an attached client has read or disconnected.
void wait_for_audience(int index, int which) {
  Slot& slot = pod.slots[index];
  slot.streams[which].is_waiting = true;
  // Removed from the epoll set, not only its events: epoll always reports a closed peer, which would loop.
  (void)k_epoll_ctl(pod.epoll, EPOLL_CTL_DEL, slot.streams[which].fd, nullptr);
  for (Attach& attach : slot.attaches)
    if (attach.ends[which] >= 0) rewatch(attach.ends[which], EPOLLOUT | EPOLLONESHOT, key_of(Source::attach, index));
}

// Reads once and never blocks: wait_for_audience() handles slow clients. Returns the number of bytes; 0: no data, end of file, or
// waiting.
size_t read_once(int index, int which) {
  Slot& slot = pod.slots[index];
  Stream& stream = slot.streams[which];
  if (stream.fd < 0) return 0;
  Audience audience = look_at_audience(slot, which);
  if (audience == Audience::slow) {
    wait_for_audience(index, which);
    return 0;
  }
  size_t capacity = audience == Audience::ready ? kAttachedReadMax : sizeof read_buffer;
  long n = k_read(stream.fd, read_buffer, capacity);
  if (n == -kEagain || n == -kEintr) return 0;
  if (n <= 0) {  // a terminal whose slave is closed returns EIO
    close_stream(index, which);
    return 0;
  }
  if (audience != Audience::none) show_audience(slot, which, read_buffer, size_t(n));
  log_bytes(index, which, read_buffer, size_t(n));
  return size_t(n);
}

}  // namespace

int open_log(Slot& slot, int directory) {
  int log = k_openat(directory, slot.log_name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0640);
  if (log < 0) return log;
  struct statx about;
  slot.log_bytes = k_statx(log, "", kAtEmptyPath, &about) < 0 ? 0 : about.stx_size;
  slot.log = log;
  slot.log_directory = directory;
  return 0;
}

void read_stream(int index, int which) {
  if (pod.slots[index].status == Status::free) return;
  for (int i = 0; i < kReadsPerPass; ++i)
    if (read_once(index, which) == 0) return;
}

// Bounded, because other processes of the container may keep writing.
void drain_streams(int index) {
  for (int which = 0; which < 2; ++which) {
    size_t drained = 0, once = 0;
    do {
      once = read_once(index, which);
      drained += once;
    } while (once > 0 && drained < kDrainBytesMax);
    if (once == 0 && !pod.slots[index].streams[which].is_waiting) end_line(index, which);
  }
}

void abandon_slow_clients(int index) {
  Slot& slot = pod.slots[index];
  drain_streams(index);  // clients that can take it still get it
  for (int which = 0; which < 2; ++which) {
    if (!slot.streams[which].is_waiting) continue;
    slot.streams[which].is_waiting = false;
    for (Attach& attach : slot.attaches) unwatch(attach.ends[which]);
  }
  drain_streams(index);
}

void close_stream(int index, int which) {
  Slot& slot = pod.slots[index];
  Stream& stream = slot.streams[which];
  if (stream.fd < 0) return;
  end_line(index, which);
  if (stream.fd == slot.terminal) {
    unwatch(slot.terminal);
    stream.fd = -1;
  }
  unwatch(stream.fd);
  (void)k_madvise_dontneed(line_buffers[index][which], kLineMax);  // returns the memory to the kernel
  for (Attach& attach : slot.attaches) unwatch(attach.ends[which]);
}

void resume_streams(int index) {
  Slot& slot = pod.slots[index];
  if (slot.status == Status::free) return;
  for (int which = 0; which < 2; ++which) {
    (void)look_at_audience(slot, which);  // epoll reports a closed client until its descriptor is closed
    Stream& stream = slot.streams[which];
    if (stream.fd < 0 || !stream.is_waiting) continue;
    stream.is_waiting = false;
    (void)watch(stream.fd, EPOLLIN, key_of(which ? Source::err : Source::out, index));
  }
}

Failure attach(int connection, Incoming& incoming) {
  const Request& request = incoming.request;
  int index = find_slot(request.id);
  if (index < 0) return {kEnoent, Stage::target, -1};
  Slot& slot = pod.slots[index];
  if (slot.status != Status::running) return {kEsrch, Stage::target, -1};
  if (incoming.fds_count != 2) return {kEproto, Stage::request, -1};
  for (Attach& attach : slot.attaches) {
    if (attach.ends[0] >= 0 || attach.ends[1] >= 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (slot.streams[i].fd < 0) continue;  // ended, or a terminal for both: the client reads end of file
      attach.ends[i] = incoming.fds[i];
      incoming.fds[i] = -1;
      (void)watch(attach.ends[i], 0, key_of(Source::attach, index));  // armed by wait_for_audience()
    }
    int input = slot.terminal >= 0 ? slot.terminal : request.flags & kWantStdin ? slot.stdin_end : -1;
    reply(connection, Reply{Kind::reply, 0, 0, -1, 0}, &input, input >= 0 ? 1 : 0);
    if (slot.flags & kStdinOnce && request.flags & kWantStdin) close_if_open(slot.stdin_end);
    return kNoFailure;
  }
  return {kEnfile, Stage::slot, -1};
}

}  // namespace coracle::pause
