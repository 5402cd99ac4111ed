// SPDX-License-Identifier: Apache-2.0
// Menus of real machines. What is expected was read from the files by eye, with GRUB's rules.
#include "tests/support/captures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "made_tree.hpp"

namespace gpuhealth::grub {
namespace {

using test::lasting_of;
using test::lines;
using test::MadeTree;
using test::next_of;
using testing::ElementsAre;
using testing::HasSubstr;

class GrubCaptures : public testing::Test {
 protected:
  void SetUp() override {
    CAPTURES_OR_RETURN(dir);
    captures = dir;
  }
  [[nodiscard]] MadeTree with_config(const std::string& file, const std::string& as = "/boot/grub2/grub.cfg") const {
    MadeTree made;
    made.copy(as, captures / "grub" / file);
    return made;
  }
  std::filesystem::path captures;
};

TEST_F(GrubCaptures, OldFedoraEntriesHaveNoIdsSoTitlesStandForThem) {
  const auto made = with_config("grubby-grub2.1/grub.cfg");
  EXPECT_THAT(lines(made), ElementsAre("linux|Linux, with Fedora 2.6.38.8-32.fc15.x86_64|2.6.38.8-32.fc15.x86_64",
                                       "linux|Linux, with Linux 2.6.38.2-9.fc15.x86_64|2.6.38.2-9.fc15.x86_64"));
  EXPECT_EQ(next_of(made.boot()), "Linux, with Fedora 2.6.38.8-32.fc15.x86_64");  // set default="0"
}

TEST_F(GrubCaptures, AnImageWithoutVersionHasNoRelease) {
  const auto made = with_config("grubby-grub2.11/grub.cfg");
  EXPECT_THAT(lines(made),
              ElementsAre("linux|title|", "linux|Linux, with Linux 2.6.38.8-32.fc15.x86_64|2.6.38.8-32.fc15.x86_64",
                          "linux|Linux, with Linux 2.6.38.2-9.fc15.x86_64|2.6.38.2-9.fc15.x86_64"));
  EXPECT_EQ(next_of(made.boot()), "title");
}

TEST_F(GrubCaptures, SavedEntryOfTheGrubenvIsFoundByTitle) {
  auto made = with_config("grubby-grub2.8/grub.cfg");
  made.copy("/boot/grub2/grubenv", captures / "grubenv/grubby/grubenv.1");
  EXPECT_EQ(next_of(made.boot()), "Linux, with Fedora 2.6.38.8-32.fc15.x86_64");
  EXPECT_EQ(lasting_of(made.boot()), "Linux, with Fedora 2.6.38.8-32.fc15.x86_64");
  made.copy("/boot/grub2/grubenv", captures / "grubenv/grubby/grubenv.2");
  EXPECT_EQ(next_of(made.boot()), "title");
}

TEST_F(GrubCaptures, SavedEntryThatIsInNoMenuFallsToTheFirst) {
  auto made = with_config("grubby-grub2.8/grub.cfg");
  made.copy("/boot/grub2/grubenv", captures / "grubenv/grubby/grubenv.3");
  const Boot boot = made.boot();
  EXPECT_EQ(next_of(boot), "title");
  EXPECT_THAT(boot.next.reason, HasSubstr("has no such entry"));
}

TEST_F(GrubCaptures, AnEmptyGrubenvMeansTheFirstEntry) {
  auto made = with_config("grubby-grub2.5/grub.cfg");
  made.copy("/boot/grub2/grubenv", captures / "grubenv/grubby/grubenv.0");
  const Boot boot = made.boot();
  EXPECT_EQ(next_of(boot), "gnulinux-simple-fe7b6773-70ed-4eac-b323-16ed459c7f86");
  EXPECT_THAT(boot.next.reason, HasSubstr("grubenv has no saved_entry"));
}

TEST_F(GrubCaptures, FedorasSubmenuPathIsMadeOfIds) {
  const std::string id = "fe7b6773-70ed-4eac-b323-16ed459c7f86";
  const std::string rc = "3.3.0-0.rc4.git1.4.fc17.x86_64";
  const auto made = with_config("grubby-grub2.5/grub.cfg");
  EXPECT_THAT(
      lines(made),
      ElementsAre(
          "linux|gnulinux-simple-" + id + "|" + rc,
          "linux|gnulinux-advanced-" + id + ">gnulinux-" + rc + "-advanced-" + id + "|" + rc,
          "linux|gnulinux-advanced-" + id + ">gnulinux-3.2.9-1.fc16.x86_64-advanced-" + id + "|3.2.9-1.fc16.x86_64",
          "linux|gnulinux-advanced-" + id + ">gnulinux-3.2.7-1.fc16.x86_64-advanced-" + id + "|3.2.7-1.fc16.x86_64"));
}

TEST_F(GrubCaptures, RhelExcerptWithoutHeaderStillHasIdsAndARescueEntry) {
  const std::string root = "4f80b3d4-90ba-4545-869c-febdecc586ce";
  const auto made = with_config("insights-grub_conf-grub2_template/sample.txt");
  EXPECT_THAT(lines(made),
              ElementsAre("linux|gnulinux-3.10.0-327.el7.x86_64-advanced-" + root + "|3.10.0-327.el7.x86_64",
                          "recovery|gnulinux-0-rescue-9f20b35c9faa49aebe171f62a11b236f-advanced-" + root + "|"));
}

TEST_F(GrubCaptures, TheReleaseIsTheImagesNotTheIds) {
  const std::string root = "4f80b3d4-90ba-4545-869c-febdecc586ce";
  const auto made = with_config("insights-grub_conf-grub2_template_no_blscfg/sample.txt");
  EXPECT_THAT(lines(made),
              ElementsAre("linux|gnulinux-3.10.0-327.el7.x86_64-advanced-" + root + "|4.18.0-240.el8.x86_64",
                          "recovery|gnulinux-0-rescue-9f20b35c9faa49aebe171f62a11b236f-advanced-" + root + "|"));
}

TEST_F(GrubCaptures, Rhel9WithoutItsEntriesHasOnlyTheFirmwareEntryAndNoKnownDefault) {
  auto made = with_config("insights-grub_conf-rhel9_uefi_host_grub2_cfg/sample.txt");
  EXPECT_THAT(lines(made), ElementsAre("firmware|uefi-firmware|"));
  const Boot boot = made.boot();
  EXPECT_EQ(boot.loader, Loader::GrubBls);
  // Whether the firmware entry is there depends on the platform.
  EXPECT_EQ(next_of(boot), "unknown");
}

TEST_F(GrubCaptures, WindowsOfOsProberIsAnotherSystem) {
  const auto made = with_config("nixos-extra-windows/grub.cfg");
  EXPECT_THAT(lines(made), ElementsAre("other-os|osprober-efi-ABD2-3058|"));
}

TEST_F(GrubCaptures, LinuxOfOsProberIsAnotherSystemAndACutFileSaysNoDefault) {
  const auto made = with_config("opensuse-leap156-osprober-commented/grub.cfg");
  EXPECT_THAT(lines(made), ElementsAre("other-os|osprober-gnulinux-simple-3abe6454-cf31-43f3-b8a4-216e52b36896|"
                                       "6.4.0-150600.21-default"));
  EXPECT_EQ(next_of(made.boot()), "unknown");
}

TEST_F(GrubCaptures, FrenchEntryWithoutId) {
  const auto made = with_config("opensuse-leap16-french-custom/grub.cfg");
  EXPECT_THAT(lines(made), ElementsAre("linux|openSUSE Leap 16.0 (MAINTENANCE - RW)|6.12.0-160000.7-default"));
  const auto entry = made.boot().menu.front();
  EXPECT_EQ(
      entry.steps.arguments,
      "root=UUID=a47cb538-3915-43e1-97f4-e2833ddc4005 splash=silent mitigations=auto quiet security= disable-overlay");
}

TEST_F(GrubCaptures, TumbleweedHasTheFirmwareEntryFirst) {
  const auto made = with_config("opensuse-tumbleweed-extra_cmdline/grub.cfg");
  EXPECT_THAT(lines(made), ElementsAre("firmware|uefi-firmware|", "linux|gnulinux-simple-abcd|6.9.1-1-default"));
  EXPECT_EQ(next_of(made.boot()), "uefi-firmware");  // an excerpt: nothing sets a default
}

TEST_F(GrubCaptures, FrenchUbuntuWithKernelsWithoutVersion) {
  const std::string id = "f6bcbea1-1f09-4a10-a1b4-12a6a8605c32";
  const auto made = with_config("ubuntu-french-lvm-custom-names/grub.cfg");
  EXPECT_THAT(lines(made), ElementsAre("linux|gnulinux-simple-" + id + "|",
                                       "linux|gnulinux-advanced-" + id + ">gnulinux-desktop-advanced-" + id + "|"));
  const Boot boot = made.boot();
  EXPECT_EQ(boot.menu[1].title, "Options avancées pour Ubuntu");
  EXPECT_EQ(next_of(boot), "unknown");  // the submenu is not closed
}

TEST_F(GrubCaptures, UbuntuCloudImage) {
  const std::string id = "e8328184-226c-4e5e-9635-8142cc114051";
  const auto made = with_config("ubuntu2204-cloudimg/grub.cfg", "/boot/grub/grub.cfg");
  EXPECT_THAT(lines(made), ElementsAre("linux|gnulinux-simple-" + id + "|5.15.0-100-generic",
                                       "linux|gnulinux-advanced-" + id + ">gnulinux-5.15.0-100-generic-advanced-" + id +
                                           "|5.15.0-100-generic",
                                       "recovery|gnulinux-advanced-" + id + ">gnulinux-5.15.0-100-generic-recovery-" +
                                           id + "|5.15.0-100-generic"));
  const Boot boot = made.boot();
  EXPECT_EQ(next_of(boot), "gnulinux-simple-" + id);
  EXPECT_EQ(boot.menu[0].steps.arguments, "root=LABEL=cloudimg-rootfs ro console=tty1 console=ttyS0");
}

TEST_F(GrubCaptures, UbuntuThatBootedWithoutItsInitrdTriesThePreviousEntry) {
  const std::string id = "e8328184-226c-4e5e-9635-8142cc114051";
  auto made = with_config("ubuntu2204-cloudimg/grub.cfg", "/boot/grub/grub.cfg");
  made.file("/boot/grub/grubenv", test::grubenv("initrdfail=1\nprev_entry=gnulinux-advanced-" + id + ">1\n"));
  const Boot boot = made.boot();
  EXPECT_EQ(next_of(boot), "gnulinux-advanced-" + id + ">gnulinux-5.15.0-100-generic-recovery-" + id);
}

TEST_F(GrubCaptures, ArchLiveMediumNamesItsDefaultById) {
  const auto made = with_config("uroot-arch-live/boot/grub/loopback.cfg", "/boot/grub/grub.cfg");
  EXPECT_THAT(lines(made),
              ElementsAre("linux|archlinux|", "linux|archlinux-accessibility|", "memtest|Run Memtest86+ (RAM test)|",
                          "memtest|Run Memtest86+ (RAM test)|", "chainload|UEFI Shell|", "chainload|UEFI Shell|",
                          "chainload|UEFI Shell|", "chainload|UEFI Shell|", "chainload|UEFI Shell|",
                          "firmware|uefi-firmware|", "unknown|System shutdown|", "unknown|System restart|"));
  const Boot boot = made.boot();
  EXPECT_EQ(next_of(boot), "archlinux");
  EXPECT_EQ(boot.menu[0].title, "Arch Linux install medium (x86_64, ${archiso_platform})");
}

TEST_F(GrubCaptures, CentOs7OnTheEfiPartition) {
  const std::string root = "2159a160-e598-45e9-aad0-278fbd11bdc3";
  MadeTree made;
  made.copy("/EFI", captures / "grub/uroot-centos7-efi/EFI");
  EXPECT_THAT(lines(made),
              ElementsAre("linux|gnulinux-3.10.0-957.el7.x86_64-advanced-" + root + "|3.10.0-957.el7.x86_64",
                          "recovery|gnulinux-0-rescue-95c8409b55ce443baf15cad9e750348d-advanced-" + root + "|"));
  const Boot boot = made.boot();
  EXPECT_EQ(boot.config, "/EFI/centos/grub.cfg");
  EXPECT_EQ(next_of(boot), "gnulinux-3.10.0-957.el7.x86_64-advanced-" + root);
  EXPECT_THAT(boot.next.reason, HasSubstr("no readable grubenv"));
}

TEST_F(GrubCaptures, CentOs7BootPartitionByItself) {
  const std::string root = "ffd7b098-0f05-47f3-831b-78d99f4e1c5d";
  MadeTree made;
  made.copy("/grub2", captures / "grub/uroot-centos7-legacy/grub2");
  EXPECT_THAT(lines(made),
              ElementsAre("linux|gnulinux-3.10.0-957.el7.x86_64-advanced-" + root + "|3.10.0-957.el7.x86_64",
                          "recovery|gnulinux-0-rescue-d2794e72bf4d44508b9ba5d447dd14ff-advanced-" + root + "|"));
  made.file("/grub2/grubenv",
            test::grubenv("saved_entry=CentOS Linux (0-rescue-d2794e72bf4d44508b9ba5d447dd14ff) 7 (Core)\n"));
  EXPECT_EQ(lasting_of(made.boot()), "gnulinux-0-rescue-d2794e72bf4d44508b9ba5d447dd14ff-advanced-" + root);
}

TEST_F(GrubCaptures, CentOs8WithBlsEntriesTbootAndAShortGrubenv) {
  MadeTree made;
  made.copy("/boot", captures / "grub/uroot-centos8-stream-bls/boot");
  made.copy("/EFI", captures / "grub/uroot-centos8-stream-bls/EFI");
  const std::string machine = "9af7b02ac08149d985841c07c8ff366e";
  EXPECT_THAT(lines(made),
              ElementsAre("linux|" + machine + "-5.18.0|5.18.0", "recovery|" + machine + "-0-rescue|",
                          "linux|tboot 1.10.2>CentOS Linux GNU/Linux, with tboot 1.10.2 and Linux 5.18.0|5.18.0"));
  const Boot boot = made.boot();
  EXPECT_EQ(boot.loader, Loader::GrubBls);
  // saved_entry begins with a digit: only Fedora's GRUB, which looks at ids first, finds it.
  EXPECT_EQ(next_of(boot), machine + "-5.18.0");
  EXPECT_EQ(lasting_of(boot), machine + "-5.18.0");
  EXPECT_EQ(boot.menu[0].steps.arguments,
            "root=UUID=d0be5cb9-622d-42d5-a531-674aaa120309 ro crashkernel=auto rhgb quiet console=ttyS1,57600n8");
  ASSERT_TRUE(boot.grubenv);
  EXPECT_THAT(boot.grubenv->damage, ElementsAre("it has 946 bytes instead of 1024",
                                                "something other than padding follows the padding's begin"));
  EXPECT_TRUE(boot.grubenv->usable);
}

TEST_F(GrubCaptures, Debian10) {
  const std::string id = "39ec20e2-83f5-44ce-8671-f31ce0856377";
  MadeTree made;
  made.copy("/boot", captures / "grub/uroot-debian10/boot");
  const std::string pinned = "gnulinux-advanced-" + id + ">gnulinux-4.19.0-9-amd64-advanced-" + id;
  EXPECT_THAT(
      lines(made),
      ElementsAre("linux|gnulinux-simple-" + id + "|4.19.0-9-amd64", "linux|" + pinned + "|4.19.0-9-amd64",
                  "recovery|gnulinux-advanced-" + id + ">gnulinux-4.19.0-9-amd64-recovery-" + id + "|4.19.0-9-amd64"));
  EXPECT_EQ(next_of(made.boot()), "gnulinux-simple-" + id);
  made.file("/boot/grub/grubenv", test::grubenv("next_entry=" + pinned + "\n"));
  EXPECT_EQ(next_of(made.boot()), pinned);
  EXPECT_EQ(lasting_of(made.boot()), "gnulinux-simple-" + id);
}

TEST_F(GrubCaptures, Debian13LiveWithCommentedEntriesAndFilesThatAreNotThere) {
  const auto made = with_config("uroot-debian13-live/boot/grub/grub.cfg", "/boot/grub/grub.cfg");
  const std::string release = "6.12.73+deb13-amd64";
  EXPECT_THAT(lines(made),
              ElementsAre("linux|Live system (amd64)|" + release, "linux|Live system (amd64 fail-safe mode)|" + release,
                          "firmware|Utilities...>UEFI Firmware Settings|",
                          "linux|Utilities...>Verify integrity of the boot medium|" + release));
  const Boot boot = made.boot();
  EXPECT_EQ(next_of(boot), "Live system (amd64)");
  EXPECT_THAT(boot.next.reason, HasSubstr("waits for a person"));
}

TEST_F(GrubCaptures, Fedora43LiveCountsFromZero) {
  MadeTree made;
  made.copy("/boot", captures / "grub/uroot-fedora43-live/boot");
  EXPECT_THAT(
      lines(made),
      ElementsAre("linux|Start Fedora-Workstation-Live|", "linux|Test this media & start Fedora-Workstation-Live|",
                  "linux|Troubleshooting -->>>Start Fedora-Workstation-Live in basic graphics mode|"));
  EXPECT_EQ(next_of(made.boot()), "Test this media & start Fedora-Workstation-Live");  // set default="1"
}

TEST_F(GrubCaptures, Fedora43StubLeadsToTheMenu) {
  MadeTree made;
  made.copy("/EFI", captures / "grub/uroot-fedora43-live/EFI");
  made.copy("/boot/grub2/other.cfg", captures / "grub/uroot-fedora43-live/boot/grub2/grub.cfg");
  EXPECT_EQ(next_of(made.boot()), "unknown");  // the menu that the stub opens is not here
  made.file("/EFI/BOOT/grub.cfg", "search --file --set=root /x\nconfigfile ($root)/boot/grub2/other.cfg\n");
  EXPECT_EQ(next_of(made.boot()), "Test this media & start Fedora-Workstation-Live");
}

TEST_F(GrubCaptures, KubuntuLiveHasEntriesThatDependOnThePlatform) {
  MadeTree made;
  made.copy("/boot", captures / "grub/uroot-kubuntu2510-live/boot");
  EXPECT_THAT(lines(made), ElementsAre("linux|Try or Install Kubuntu|", "linux|Kubuntu (safe graphics)|",
                                       "linux|OEM install (for manufacturers)|", "unknown|Boot from next volume|",
                                       "firmware|UEFI Firmware Settings|", "memtest|Test memory|"));
  const Boot boot = made.boot();
  EXPECT_TRUE(boot.menu[2].certain);
  EXPECT_FALSE(boot.menu[3].certain);
  EXPECT_FALSE(boot.menu[5].certain);
}

TEST_F(GrubCaptures, MintLive) {
  MadeTree made;
  made.copy("/boot/grub/grub.cfg", captures / "grub/uroot-mint223-live/boot/grub/grub.cfg");
  EXPECT_THAT(lines(made), ElementsAre("linux|Start Linux Mint 22.3 Cinnamon 64-bit|",
                                       "linux|Start Linux Mint 22.3 Cinnamon 64-bit (compatibility mode)|",
                                       "linux|OEM install (for manufacturers)|", "unknown|Boot from next volume|",
                                       "firmware|UEFI Firmware Settings|", "memtest|Memory test|"));
}

TEST_F(GrubCaptures, PopOsLive) {
  MadeTree made;
  made.copy("/boot", captures / "grub/uroot-popos2404-live/boot");
  EXPECT_THAT(lines(made), ElementsAre("linux|Try or Install Pop_OS|"));
  EXPECT_EQ(next_of(made.boot()), "Try or Install Pop_OS");
}

TEST_F(GrubCaptures, Ubuntu1604WithSignedImagesUpstartAndRecovery) {
  MadeTree made;
  made.copy("/grub", captures / "grub/uroot-ubuntu1604/grub");
  const std::string sub = "gnulinux-advanced-UUID2>gnulinux-4.10.0-4";
  EXPECT_THAT(lines(made),
              ElementsAre("linux|gnulinux-simple-UUID2|4.10.0-42-generic",
                          "linux|" + sub + "2-generic-advanced-UUID2|4.10.0-42-generic",
                          "linux|" + sub + "2-generic-init-upstart-UUID2|4.10.0-42-generic",
                          "recovery|" + sub + "2-generic-recovery-UUID2|4.10.0-42-generic",
                          "linux|" + sub + "0-generic-advanced-UUID2|4.10.0-40-generic",
                          "linux|" + sub + "0-generic-init-upstart-UUID2|4.10.0-40-generic",
                          "recovery|" + sub + "0-generic-recovery-UUID2|4.10.0-40-generic", "firmware|uefi-firmware|"));
  EXPECT_EQ(next_of(made.boot()), "gnulinux-simple-UUID2");
}

TEST_F(GrubCaptures, Fedora32OfSystemdBootTakesTheNewestThatThePatternNames) {
  MadeTree made;
  made.copy("/loader", captures / "bls/uroot-fedora32/loader");
  const std::string machine = "de8380606ce44a2dabad127eb049acbe";
  EXPECT_THAT(lines(made), ElementsAre("linux|" + machine + "-5.6.6-300.fc32.x86_64.conf|5.6.6-300.fc32.x86_64",
                                       "recovery|" + machine + "-0-rescue.conf|5.6.6-300.fc32.x86_64"));
  const Boot boot = made.boot();
  EXPECT_EQ(boot.loader, Loader::SystemdBoot);
  EXPECT_EQ(lasting_of(boot), machine + "-5.6.6-300.fc32.x86_64.conf");
}

TEST_F(GrubCaptures, BlsEntriesOfOtherFedoras) {
  MadeTree made;
  made.file("/boot/grub2/grub.cfg",
            "load_env\nset default=\"${saved_entry}\"\nset kernelopts=\"root=/dev/sda1 ro\"\nset "
            "tuned_params=\"\"\nblscfg\n");
  made.file("/boot/grub2/grubenv", test::grubenv("saved_entry=aaaa-6.12.96\n"));
  made.copy("/boot/loader/entries/aaaa-6.11.9-100.fc39.x86_64.conf", captures / "bls/fedora39-osbuild/entry.conf");
  made.copy("/boot/loader/entries/aaaa-6.8.5-200.fc39.x86_64.conf",
            captures / "bls/fedora39-workstation-tuned-vars/entry.conf");
  made.copy("/boot/loader/entries/aaaa-6.12.96.conf", captures / "bls/fedora40-custom-kernel-minimal/entry.conf");
  // The custom kernel's name has no release: blscfg takes 6.12.96 for its version as well.
  EXPECT_THAT(lines(made),
              ElementsAre("linux|aaaa-6.12.96|6.12.96", "linux|aaaa-6.11.9-100.fc39.x86_64|6.11.9-100.fc39.x86_64",
                          "linux|aaaa-6.8.5-200.fc39.x86_64|6.8.5-200.fc39.x86_64"));
  const Boot boot = made.boot();
  EXPECT_EQ(next_of(boot), "aaaa-6.12.96");
  EXPECT_EQ(boot.menu[2].steps.arguments, "root=/dev/sda1 ro");
  EXPECT_THAT(boot.menu[2].steps.initrds, ElementsAre("/initramfs-6.8.5-200.fc39.x86_64.img"));
}

std::string text_of(const std::filesystem::path& path) {
  MadeTree made;
  made.copy("/x", path);
  return made.read("/x");
}

TEST_F(GrubCaptures, Grubenvs) {
  const auto dir = captures / "grubenv";
  const auto empty = parse_grubenv(text_of(dir / "grubby/grubenv.0"));
  EXPECT_TRUE(empty.usable);
  EXPECT_THAT(empty.damage, ElementsAre());
  EXPECT_TRUE(empty.values.empty());
  const auto title = parse_grubenv(text_of(dir / "grubby/grubenv.1"));
  EXPECT_EQ(title.values.at("saved_entry"), "Linux, with Fedora 2.6.38.8-32.fc15.x86_64");
  const auto debug = parse_grubenv(text_of(dir / "grubby/grubenv.3"));
  EXPECT_EQ(debug.values.at("saved_entry"),
            "Red Hat Enterprise Linux Server (3.10.0-327.22.2.el7.x86_64.debug) 7.2 (Maipo) with debugging");
  const auto longer = parse_grubenv(text_of(dir / "grubby/grubenv.4"));
  EXPECT_TRUE(longer.usable);
  EXPECT_THAT(longer.damage, ElementsAre("it has 1025 bytes instead of 1024"));
  const auto printed = parse_grubenv(text_of(dir / "insights-grubenv-grubenv_with_tuned_params/sample.txt"));
  EXPECT_FALSE(printed.usable);
  EXPECT_THAT(printed.damage, testing::Contains("it does not begin with \"# GRUB Environment Block\""));
}

TEST_F(GrubCaptures, DefaultGrubFiles) {
  const auto read = [&](const std::string& name) {
    Settings settings;
    read_settings(settings, "grub", text_of(captures / "default-grub" / name / "grub"));
    return settings;
  };
  const auto arch = read("arch-grapheneos-server");
  EXPECT_EQ(arch.value("GRUB_DEFAULT"), "0");
  EXPECT_EQ(arch.value("GRUB_DISTRIBUTOR"), "Arch");
  const auto elementary = read("elementary-vfio-commented-duplicate");
  EXPECT_EQ(elementary.value("GRUB_DEFAULT"), "elementary");
  EXPECT_EQ(elementary.value("GRUB_RECORDFAIL_TIMEOUT"), "1");
  EXPECT_FALSE(elementary.find("GRUB_DISTRIBUTOR")->value);  // a command's output
  EXPECT_THAT(elementary.value("GRUB_CMDLINE_LINUX_DEFAULT"), testing::Not(HasSubstr("usbcore")));
  EXPECT_EQ(elementary.value("GRUB_SAVEDEFAULT"), "false");
  EXPECT_EQ(elementary.find("GRUB_DISABLE_RECOVERY"), nullptr);
  const auto fedora = read("fedora-guru25-blscfg-false");
  EXPECT_EQ(fedora.value("GRUB_DEFAULT"), "saved");
  EXPECT_EQ(fedora.value("GRUB_ENABLE_BLSCFG"), "false");
  EXPECT_FALSE(fedora.find("GRUB_DISTRIBUTOR")->value);
  EXPECT_THAT(fedora.warnings, ElementsAre());
}

}  // namespace
}  // namespace gpuhealth::grub
