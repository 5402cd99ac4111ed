// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "grub/kernels.hpp"
#include "grub/qualification.hpp"
#include "machine.hpp"

namespace gpuhealth::grub {
namespace {

using test::DebianMachine;
using test::kNew;
using test::kOld;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

Inventory take(const test::MadeTree& made) {
  auto inventory = take_inventory(made.tree());
  if (!inventory) throw std::runtime_error(inventory.error().text);
  return std::move(*inventory);
}

TEST(Inventory, KernelsNewestFirstWithPackageBuildAndUse) {
  DebianMachine machine;
  machine.made.file("/var/lib/dpkg/status",
                    "Package: linux-image-" + kOld +
                        "\nStatus: install ok installed\nSource: linux-signed-amd64 (6.1.170+3)\n"
                        "Version: 6.1.170-3\n\nPackage: linux-image-" +
                        kNew +
                        "\nStatus: install ok half-configured\nVersion: 6.1.172-1\n\n"
                        "Package: linux-image-amd64\nStatus: install ok installed\nVersion: 6.1.172-1\n\n"
                        "Package: linux-image-6.1.0-1-amd64\nStatus: deinstall ok config-files\nVersion: 6.1.4-1\n");
  machine.made.file("/proc/sys/kernel/osrelease", kOld + "\n");
  const Inventory inventory = take(machine.made);
  ASSERT_EQ(inventory.kernels.size(), 2U);
  EXPECT_EQ(inventory.kernels[0].release, kNew);
  EXPECT_THAT(inventory.kernels[0].problems, Contains(HasSubstr("only half installed")));
  const Kernel& old = inventory.kernels[1];
  EXPECT_EQ(old.package->version, "6.1.170-3");
  EXPECT_EQ(old.package->source, "linux-signed-amd64");
  EXPECT_EQ(old.build, "#1 SMP Debian 6.1.170-3 (2026-09-01)");
  EXPECT_EQ(old.initramfs, "/boot/initrd.img-" + kOld);
  EXPECT_EQ(old.amdgpu, AmdgpuModule::InTree);
  EXPECT_TRUE(old.running);
  EXPECT_FALSE(old.next);
  EXPECT_TRUE(inventory.kernels[0].next);
  EXPECT_THAT(old.problems, IsEmpty());
  EXPECT_EQ(old.entries.front(), test::debian_path(kOld));
}

TEST(Inventory, AmdgpuByDkmsAndTheKernelItLacks) {
  DebianMachine machine;
  machine.made.file("/lib/modules/" + kOld + "/modules.dep",
                    "kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko:\nupdates/dkms/amdgpu.ko: kernel/x.ko\n");
  machine.made.file("/var/lib/dkms/amdgpu/6.16.13/" + kOld + "/x86_64/module/amdgpu.ko", "x");
  const Inventory inventory = take(machine.made);
  EXPECT_EQ(find_kernel(inventory, kOld)->amdgpu, AmdgpuModule::Dkms);
  EXPECT_EQ(find_kernel(inventory, kOld)->dkms_version, "6.16.13");
  EXPECT_THAT(find_kernel(inventory, kNew)->problems, Contains(HasSubstr("DKMS on this machine and is not built")));
}

TEST(Inventory, LeftoversOfARemovedKernelAreNoKernel) {
  DebianMachine machine;
  machine.made.file("/lib/modules/6.1.0-1-amd64/updates/dkms/amdgpu.ko", "x");
  EXPECT_EQ(find_kernel(take(machine.made), "6.1.0-1-amd64"), nullptr);
}

TEST(Inventory, ArchNamesItsKernelsInTheImageAndInPkgbase) {
  test::MadeTree made;
  made.file("/etc/os-release", "ID=arch\n");
  made.file("/boot/vmlinuz-linux", test::kernel_image("7.0.12-arch1-1")).file("/boot/initramfs-linux.img", "x");
  made.file("/usr/lib/modules/7.0.12-arch1-1/pkgbase", "linux\n")
      .file("/usr/lib/modules/7.0.12-arch1-1/modules.dep", "x");
  made.file("/var/lib/pacman/local/linux-7.0.12.arch1-1/desc", "x");
  made.file("/boot/grub/grub.cfg",
            "set timeout=5\nmenuentry 'Arch Linux' --id arch {\nlinux /boot/vmlinuz-linux root=UUID=x rw\ninitrd "
            "/boot/initramfs-linux.img\n}\n");
  const Inventory inventory = take(made);
  ASSERT_EQ(inventory.kernels.size(), 1U);
  const Kernel& kernel = inventory.kernels[0];
  EXPECT_EQ(kernel.release, "7.0.12-arch1-1");
  EXPECT_EQ(kernel.package->version, "7.0.12.arch1-1");
  EXPECT_EQ(kernel.image, "/boot/vmlinuz-linux");
  EXPECT_EQ(kernel.initramfs, "/boot/initramfs-linux.img");
  EXPECT_THAT(kernel.problems, IsEmpty());
}

// An rpm header with name, version, release and arch.
std::string rpm_header(const std::vector<std::pair<std::uint32_t, std::string>>& tags) {
  const auto big = [](std::uint32_t v) {
    return std::string{static_cast<char>(v >> 24U), static_cast<char>(v >> 16U), static_cast<char>(v >> 8U),
                       static_cast<char>(v)};
  };
  std::string index, data;
  for (const auto& [tag, text] : tags) {
    index += big(tag) + big(6) + big(static_cast<std::uint32_t>(data.size())) + big(1);
    data += text + '\0';
  }
  return big(static_cast<std::uint32_t>(tags.size())) + big(static_cast<std::uint32_t>(data.size())) + index + data;
}

TEST(Inventory, FedorasRpmDatabase) {
  test::MadeTree made;
  made.file("/etc/os-release", "ID=fedora\nVERSION_ID=44\n").file("/usr/lib/sysimage/rpm/x", "");
  const std::string blob = rpm_header({{1000, "kernel-core"}, {1001, "7.0.12"}, {1002, "200.fc44"}, {1022, "x86_64"}});
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((made.root() + "/usr/lib/sysimage/rpm/rpmdb.sqlite").c_str(), &db), SQLITE_OK);
  sqlite3_exec(db,
               "CREATE TABLE Packages(hnum INTEGER PRIMARY KEY, blob BLOB); CREATE TABLE Name(key TEXT, hnum INTEGER, "
               "idx INTEGER);"
               "INSERT INTO Name VALUES('kernel-core', 1, 0)",
               nullptr, nullptr, nullptr);
  sqlite3_stmt* put = nullptr;
  sqlite3_prepare_v2(db, "INSERT INTO Packages VALUES(1, ?)", -1, &put, nullptr);
  sqlite3_bind_blob(put, 1, blob.data(), static_cast<int>(blob.size()), SQLITE_STATIC);
  sqlite3_step(put);
  sqlite3_finalize(put);
  sqlite3_close(db);
  const Packages packages = read_packages(made.tree());
  EXPECT_EQ(packages.manager, Ordering::Rpm);
  ASSERT_EQ(packages.all.size(), 1U);
  EXPECT_EQ(packages.all[0].version, "7.0.12-200.fc44");
  EXPECT_EQ(packages.all[0].release, "7.0.12-200.fc44.x86_64");
}

TEST(SystemdBoot, PinChangesTheDefaultLineAndUnpinBringsItBack) {
  test::MadeTree made;
  made.file("/efi/loader/loader.conf", "timeout 3\ndefault arch.conf\nconsole-mode max\n");
  for (const std::string name : {"arch", "arch-lts"}) {
    const std::string release = name == "arch" ? "7.0.12-arch1-1" : "6.18.35-1-lts";
    made.file("/efi/loader/entries/" + name + ".conf", "title Arch " + name + "\nversion " + release +
                                                           "\nlinux /vmlinuz-" + name + "\ninitrd /initramfs-" + name +
                                                           ".img\noptions root=UUID=x rw\n");
    made.file("/efi/vmlinuz-" + name, test::kernel_image(release)).file("/efi/initramfs-" + name + ".img", "x");
    made.file("/lib/modules/" + release + "/modules.dep", "x");
  }
  made.file("/efi/EFI/systemd/systemd-bootx64.efi", "x");
  const std::string before = made.read("/efi/loader/loader.conf");
  test::FailingSystem system;
  Surroundings surroundings;
  surroundings.system = &system;
  const auto pinned = perform(made.tree(), {Operation::Pin, "6.18.35-1-lts", {}}, surroundings);
  ASSERT_TRUE(pinned) << pinned.error().text;
  EXPECT_EQ(test::lasting_of(made.boot()), "arch-lts.conf");
  EXPECT_EQ(pinned->lasting, "6.18.35-1-lts");
  EXPECT_THAT(perform(made.tree(), {Operation::Trial, "7.0.12-arch1-1", {}}, surroundings).error().text,
              HasSubstr("EFI variables"));
  ASSERT_TRUE(perform(made.tree(), {Operation::Unpin, "", {}}, surroundings));
  EXPECT_EQ(made.read("/efi/loader/loader.conf"), "timeout 3\nconsole-mode max\ndefault arch.conf\n");
  EXPECT_EQ(test::lasting_of(made.boot()), "arch.conf");
  EXPECT_NE(before, "");
}

TEST(Qualification, GoesTheDrawnWay) {
  Qualification one;
  const Occasion first{"boot-1", {}, ""};
  const Occasion second{"boot-2", {}, ""};
  EXPECT_TRUE(may_try_by_itself(one));
  EXPECT_TRUE(advance(one, QualificationEvent::Held, first));
  EXPECT_TRUE(advance(one, QualificationEvent::Armed, first));
  EXPECT_FALSE(advance(one, QualificationEvent::SeenOther, first));  // still the boot that armed it
  EXPECT_TRUE(advance(one, QualificationEvent::SeenRunning, second));
  EXPECT_EQ(one.state, QualificationState::Booted);
  EXPECT_TRUE(advance(one, QualificationEvent::CanariesStarted, second));
  EXPECT_TRUE(advance(one, QualificationEvent::CanariesPassed, second));
  EXPECT_EQ(one.state, QualificationState::Blessed);
  EXPECT_FALSE(may_try_by_itself(one));
}

TEST(Qualification, ATrialThatDidNotTakePlaceDoesNotCount) {
  Qualification one;
  (void)advance(one, QualificationEvent::Armed, {"boot-1", {}, ""});
  EXPECT_FALSE(may_try_by_itself(one));
  EXPECT_TRUE(advance(one, QualificationEvent::SeenAway, {"boot-2", {}, ""}));
  EXPECT_EQ(one.state, QualificationState::Installed);
  EXPECT_TRUE(may_try_by_itself(one));
}

TEST(Qualification, OneThatNeverCameBackIsTriedAgainByAPersonAlone) {
  Qualification one;
  (void)advance(one, QualificationEvent::Armed, {"boot-1", {}, ""});
  EXPECT_TRUE(advance(one, QualificationEvent::SeenOther, {"boot-3", {}, ""}));
  EXPECT_EQ(one.state, QualificationState::NeverCameBack);
  EXPECT_FALSE(may_try_by_itself(one));
  EXPECT_TRUE(advance(one, QualificationEvent::Armed, {"boot-3", {}, ""}));
}

TEST(Qualification, AnotherBuildStartsAnew) {
  Qualification one;
  (void)advance(one, QualificationEvent::RejectedByPerson, {"b", {}, "#1"});
  EXPECT_EQ(one.state, QualificationState::Rejected);
  EXPECT_TRUE(advance(one, QualificationEvent::BuildChanged, {"b", {}, "#2"}));
  EXPECT_EQ(one.state, QualificationState::Installed);
  EXPECT_TRUE(may_try_by_itself(one));
}

TEST(Qualification, IsRememberedAndDamageIsNothing) {
  Qualifications all;
  (void)advance(all.kernels["6.1"], QualificationEvent::Armed, {"boot-1", {}, "#1"});
  test::MadeTree made;
  made.file(std::string(kQualificationFile), qualifications_text(all));
  const auto read = read_qualifications(made.tree()).kernels.at("6.1");
  EXPECT_EQ(read.state, QualificationState::TrialArmed);
  EXPECT_EQ(read.armed_in_boot, "boot-1");
  EXPECT_EQ(read.trials, 1);
  made.file(std::string(kQualificationFile), "{\"kernels\": [1");
  EXPECT_TRUE(read_qualifications(made.tree()).kernels.empty());
}

}  // namespace
}  // namespace gpuhealth::grub
