// SPDX-License-Identifier: Apache-2.0
#include "cli/report_bundle.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "core/fd.hpp"

namespace gpuhealth::cli {
namespace {

constexpr uid_t kFirstPerson = 1000;
constexpr uid_t kNobody = 65534;

struct ArchiveFree {
  void operator()(archive* a) const { archive_write_free(a); }
};
struct EntryFree {
  void operator()(archive_entry* e) const { archive_entry_free(e); }
};

bool add(archive* to, const PackedFile& file, WallTime made) {
  const std::unique_ptr<archive_entry, EntryFree> entry(archive_entry_new());
  archive_entry_set_pathname(entry.get(), ("gpuhealth-report/" + file.name).c_str());
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(file.text.size()));
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0644);
  archive_entry_set_mtime(entry.get(), to_microseconds(made) / 1'000'000, 0);
  return archive_write_header(to, entry.get()) == ARCHIVE_OK &&
         archive_write_data(to, file.text.data(), file.text.size()) == static_cast<la_ssize_t>(file.text.size());
}

std::string history_csv(const Report& r) {
  std::string out = "time,device,pci,reading,unit,min,mean,max\n";
  std::array<char, 256> line{};
  for (const auto& s : r.series) {
    for (const auto& p : s.points) {
      std::snprintf(line.data(), line.size(), ",%g,%g,%g\n", p.min, p.mean, p.max);
      out += time_or_null(p.time).get<std::string>() + "," + s.device + "," + s.pci + "," +
             std::string(s.metric->name) + "," + std::string(to_string(s.metric->unit)) + line.data();
    }
  }
  return out;
}

Json events_json(const Report& r) {
  Json out = Json::array();
  for (const auto& e : r.events)
    out.push_back({{"time", time_or_null(e.time)},
                   {"type", e.type},
                   {"severity", to_string(e.severity)},
                   {"device", text_or_null(e.device)},
                   {"text", e.text}});
  return out;
}

constexpr const char* kReadme =
    "A report of gpuhealthctl.\n\n"
    "report.html   the page for people; opens in any browser, also without a network\n"
    "report.json   the same for programs\n"
    "devices.json  all that is known of each GPU\n"
    "events.json   what happened\n"
    "history.csv   curves\n"
    "canary.jsonl  results of the canaries\n";

}  // namespace

Result<void> write_whole(const std::string& path, const std::string& text) {
  const std::string beside = path + "." + std::to_string(getpid()) + ".new";
  Fd fd(open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd) return fail_errno("cannot write " + beside, errno);
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto n = write(fd.get(), rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = errno;
      unlink(beside.c_str());
      return fail_errno("cannot write " + beside, error);
    }
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  fd.reset();
  if (rename(beside.c_str(), path.c_str()) == 0) return {};
  const int error = errno;
  unlink(beside.c_str());
  return fail_errno("cannot write " + path, error);
}

Result<void> write_bundle(const std::string& path, const std::vector<PackedFile>& files, WallTime made) {
  const std::string beside = path + "." + std::to_string(getpid()) + ".new";
  const std::unique_ptr<archive, ArchiveFree> to(archive_write_new());
  bool good = archive_write_set_format_pax_restricted(to.get()) == ARCHIVE_OK &&
              archive_write_add_filter_zstd(to.get()) >= ARCHIVE_WARN &&
              archive_write_open_filename(to.get(), beside.c_str()) == ARCHIVE_OK;
  for (const auto& file : files) good = good && add(to.get(), file, made);
  good = good && archive_write_close(to.get()) == ARCHIVE_OK;
  if (!good || rename(beside.c_str(), path.c_str()) != 0) {
    const char* why = good ? nullptr : archive_error_string(to.get());
    const int error = errno;
    unlink(beside.c_str());
    if (why == nullptr) return fail_errno("cannot write " + path, error);
    return fail(ErrorCode::Unreadable, "cannot write " + path + ": " + why);
  }
  return {};
}

void add_names(Masks& masks) {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) {
    const std::string full = host.data();
    masks.add(full, "host");
    masks.add(full.substr(0, full.find('.')), "host");
  }
  int number = 0;
  setpwent();
  while (const passwd* user = getpwent()) {
    if (user->pw_uid < kFirstPerson || user->pw_uid == kNobody) continue;
    masks.add(user->pw_name, "user" + std::to_string(++number));
    // "Jane Doe,,,": the person's own name.
    const std::string real = user->pw_gecos == nullptr ? "" : user->pw_gecos;
    masks.add(real.substr(0, real.find(',')), "user" + std::to_string(number));
  }
  endpwent();
}

std::vector<PackedFile> bundle_files(const Report& report, bool keep_names) {
  std::string lines;
  for (const auto& m : report.measurements) lines += canary::to_json_line(m) + "\n";
  std::vector<PackedFile> files = {{"README", kReadme},
                                   {"report.html", report_html(report)},
                                   {"report.json", dump(report_json(report)) + "\n"},
                                   {"devices.json", dump(json_devices(report.machine.devices)) + "\n"},
                                   {"events.json", dump(events_json(report)) + "\n"},
                                   {"history.csv", history_csv(report)},
                                   {"canary.jsonl", lines}};
  if (keep_names) return files;
  Masks masks;
  add_devices(masks, report);
  add_names(masks);
  for (auto& file : files) file.text = masks.apply(file.text);
  return files;
}

}  // namespace gpuhealth::cli
