// SPDX-License-Identifier: Apache-2.0
// Putting a bundle in force: written beside, synced, then one link changes. Below /var/lib/gpuhealthd/policy:
// bundles/SERIAL-NAME/ (the files and bundle.json), current and previous (links), audit.jsonl.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/json.hpp"
#include "policy/bundle.hpp"
#include "policy/files.hpp"

namespace gpuhealth::policy {
namespace {

using Json = nlohmann::ordered_json;

tl::unexpected<Refusal> refuse(std::string code, std::string text) {
  return tl::unexpected<Refusal>(Refusal{std::move(code), std::move(text)});
}
tl::unexpected<Refusal> failed(const Error& error) {
  return refuse("failed", error.text);
}

class Installation {
 public:
  static Accepted<Installation> open(const std::string& root_path) {
    auto root = Root::open(root_path);
    if (!root) return failed(root.error());
    Installation out(std::move(*root));
    auto folder = out.root_.folder(std::string(kBundleFolder), true);
    if (!folder) return failed(folder.error());
    out.folder_ = std::move(*folder);
    out.lock_.reset(::openat(out.folder_.get(), "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!out.lock_) return failed(fail_errno("cannot open the lock of the bundles", errno).value());
    if (::flock(out.lock_.get(), LOCK_EX | LOCK_NB) != 0) return refuse("failed", "another installation is under way");
    return out;
  }

  // A refusal that cannot be written down is still a refusal; an installation whose begin cannot be is none.
  Result<void> audit(WallTime now, const Json& what, const std::string& who) const {
    Json line = {{"time", text_of(now)}, {"uid", ::getuid()}, {"who", who}};
    line.update(what);
    return append_line(folder_.get(), "audit.jsonl", line.dump(-1, ' ', true, Json::error_handler_t::replace), 0640);
  }

  [[nodiscard]] std::string link(const std::string& name) const {
    return root_.read_link(std::string(kBundleFolder) + "/" + name).value_or("");
  }
  [[nodiscard]] Json described(const std::string& target) const {
    return parse_json<Json>(root_.read(std::string(kBundleFolder) + "/" + target + "/bundle.json", 65536).value_or(""));
  }
  // What was ever in force here.
  [[nodiscard]] std::int64_t highest_serial() const {
    std::int64_t out = 0;
    const auto take = [&](const Json& json) {
      if (json.is_object() && json.contains("serial") && json["serial"].is_number_integer())
        out = std::max(out, json["serial"].get<std::int64_t>());
    };
    take(parse_json<Json>(root_.read(std::string(kBundleFolder) + "/serial.json", 4096).value_or("")));
    for (const char* name : {"current", "previous"})
      if (const auto target = link(name); !target.empty()) take(described(target));
    return out;
  }

  Result<std::string> write(const Verified& verified) const {
    const Bundle& bundle = verified.bundle;
    const std::string name = std::to_string(bundle.header.serial) + "-" + bundle.header.name;
    const std::string path = std::string(kBundleFolder) + "/bundles/" + name;
    const auto above = root_.folder(std::string(kBundleFolder) + "/bundles", true);
    if (!above) return tl::unexpected<Error>(above.error());
    if (const auto removed = remove(name); !removed) return tl::unexpected<Error>(removed.error());
    const auto folder = root_.folder(path, true);
    if (!folder) return tl::unexpected<Error>(folder.error());
    for (const auto& file : bundle.files)
      if (const auto done = write_file(folder->get(), file.name, file.text, 0644); !done)
        return tl::unexpected<Error>(done.error());
    const Json about = {{"name", bundle.header.name},
                        {"serial", bundle.header.serial},
                        {"created", bundle.header.created},
                        {"expires", bundle.header.expires},
                        {"key", verified.key}};
    if (const auto done = write_file(folder->get(), "bundle.json", about.dump(), 0644); !done)
      return tl::unexpected<Error>(done.error());
    return "bundles/" + name;
  }

  // Of a folder below bundles/, which holds plain files only.
  Result<void> remove(const std::string& name) const {
    const std::string path = std::string(kBundleFolder) + "/bundles/" + name;
    const auto folder = root_.folder(path, false);
    if (!folder) return {};
    const auto names = root_.list(path, 1000);
    if (!names) return tl::unexpected<Error>(names.error());
    for (const auto& file : *names) (void)::unlinkat(folder->get(), file.c_str(), 0);
    const auto above = root_.folder(std::string(kBundleFolder) + "/bundles", false);
    if (above && ::unlinkat(above->get(), name.c_str(), AT_REMOVEDIR) != 0)
      return fail_errno("cannot remove " + path, errno);
    return {};
  }

  [[nodiscard]] Result<void> switch_to(const std::string& target) const {
    if (auto done = keep_serial(); !done) return done;  // what cannot be kept is not switched to
    const std::string current = link("current");
    if (!current.empty() && current != target)
      if (auto done = write_link(folder_.get(), "previous", current); !done) return done;
    return write_link(folder_.get(), "current", target);
  }

  // Which serials are used, for when no bundle says so any more. Before each switch and each roll-back.
  [[nodiscard]] Result<void> keep_serial() const {
    return write_file(folder_.get(), "serial.json", Json{{"serial", highest_serial()}}.dump(), 0644);
  }

  void remove_old() const {
    const auto names = root_.list(std::string(kBundleFolder) + "/bundles", 1000);
    if (!names) return;
    for (const auto& name : *names)
      if ("bundles/" + name != link("current") && "bundles/" + name != link("previous")) (void)remove(name);
  }

  [[nodiscard]] const Root& root() const { return root_; }
  [[nodiscard]] int folder() const { return folder_.get(); }

 private:
  explicit Installation(Root root) : root_(std::move(root)) {}
  Root root_;
  Fd folder_;
  Fd lock_;
};

Accepted<Installed> try_install(const Installation& here, const std::string& path, const InstallOptions& options,
                                WallTime now) {
  std::vector<std::string> notes;
  auto verified = verify_bundle(path, trusted_keys(options.root, notes), now, options.allow_unsigned);
  if (!verified) return tl::unexpected<Refusal>(verified.error());
  const BundleHeader& header = verified->bundle.header;
  const std::int64_t highest = here.highest_serial();
  if (header.serial == highest)
    return refuse("replayed",
                  "serial " + std::to_string(header.serial) + " was installed before; a new bundle has a higher one");
  if (header.serial < highest)
    return refuse("downgraded", "serial " + std::to_string(header.serial) + " is older than " +
                                    std::to_string(highest) + ", which was installed before");
  const MachineFacts facts = read_facts(options.root, notes);
  Installed out{false, header, verified->key, ""};
  const int place = rollout_place(facts.machine_id, header.name);
  if (header.percent < 100 && facts.machine_id.empty()) {
    out.text = "held back: the roll-out is at " + std::to_string(header.percent) +
               " %, and without /etc/machine-id this machine has no place in it; systemd-machine-id-setup makes one";
    return out;
  }
  if (header.percent < 100 && place >= header.percent) {
    out.text = "held back: the roll-out is at " + std::to_string(header.percent) + " %, this machine comes at " +
               std::to_string(place + 1) + " %";
    return out;
  }
  const auto target = here.write(*verified);
  if (!target) return failed(target.error());
  // With what else there is on this machine. What was broken before is not this bundle's fault.
  const auto before = load_layers(options.root, facts, now);
  const auto after = load_layers(options.root, facts, now, std::string(kBundleFolder) + "/" + *target);
  if (!after || (!after->sound() && before && before->sound())) {
    (void)here.remove(target->substr(target->find('/') + 1));
    return refuse("invalid-policy", after ? after->problem() : after.error().text);
  }
  const Json begun = {{"what", "install"}, {"file", path}, {"result", "begun"}, {"serial", header.serial}};
  if (const auto written = here.audit(now, begun, options.who); !written) {
    (void)here.remove(target->substr(target->find('/') + 1));
    return failed(written.error());
  }
  if (const auto done = here.switch_to(*target); !done) return failed(done.error());
  here.remove_old();
  out.active = true;
  out.text = "bundle " + header.name + " with serial " + std::to_string(header.serial);
  out.text += after->sound()
                  ? " is in force from the next reload on"
                  : " is installed; no policy of this machine is taken before this is mended: " + after->problem();
  return out;
}

}  // namespace

Accepted<Installed> install_bundle(const std::string& path, const InstallOptions& options, WallTime now) {
  const auto here = Installation::open(options.root);
  if (!here) return tl::unexpected<Refusal>(here.error());
  auto out = try_install(*here, path, options, now);
  Json line = {{"what", "install"}, {"file", path}};
  if (out) {
    line.update(Json{{"result", out->active ? "installed" : "held-back"},
                     {"name", out->header.name},
                     {"serial", out->header.serial},
                     {"key", out->key},
                     {"text", out->text}});
  } else {
    line.update(Json{{"result", "refused"}, {"reason", out.error().code}, {"text", out.error().text}});
  }
  (void)here->audit(now, line, options.who);  // that it began is written down
  return out;
}

Accepted<Installed> roll_back(const std::string& root, const std::string& why, const std::string& who, WallTime now) {
  const auto here = Installation::open(root);
  if (!here) return tl::unexpected<Refusal>(here.error());
  const std::string current = here->link("current"), previous = here->link("previous");
  if (current.empty()) return refuse("failed", "no bundle is installed");
  if (const auto kept = here->keep_serial(); !kept) return failed(kept.error());
  const bool none = previous.empty();
  if (previous == current) return refuse("failed", current + " is what was returned to; there is no bundle before it");
  if (!none && !here->described(previous).is_object())
    return refuse("failed", "the bundle before, " + previous + ", is damaged or gone; " + current + " stays in force");
  Installed out;
  if (none) {
    if (::unlinkat(here->folder(), "current", 0) != 0)
      return failed(fail_errno("cannot remove current", errno).value());
    out.text = "no bundle is in force any more";
  } else {
    if (const auto done = write_link(here->folder(), "current", previous); !done) return failed(done.error());
    const Json about = here->described(previous);
    if (about.is_object())
      out.header.name = about.value("name", ""), out.header.serial = about.value("serial", std::int64_t{0});
    out.active = true;
    out.text = "back at bundle " + out.header.name + " with serial " + std::to_string(out.header.serial);
  }
  const Json line = {{"what", "roll-back"},
                     {"from", current},
                     {"result", out.active ? "installed" : "removed"},
                     {"reason", why},
                     {"text", out.text}};
  if (const auto written = here->audit(now, line, who); !written) return failed(written.error());
  return out;
}

}  // namespace gpuhealth::policy
