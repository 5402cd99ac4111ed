// SPDX-License-Identifier: Apache-2.0
// Which entry boots. The cases named T… were seen on real GRUB 2.06 in a virtual machine with three kernels; the
// expected entry is the one that it booted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "made_tree.hpp"

namespace gpuhealth::grub {
namespace {

using test::debian_config;
using test::debian_id;
using test::debian_path;
using test::grubenv;
using test::lasting_of;
using test::lines;
using test::MadeTree;
using test::next_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const std::string k55 = "6.1.0-55-cloud-amd64";
const std::string k56 = "6.1.0-56-cloud-amd64";
const std::string k57 = "6.1.0-57-cloud-amd64";
const std::string kSimple = "gnulinux-simple-11111111-2222-3333-4444-555555555555";

MadeTree with(const std::string& config, const std::string& env_lines) {
  MadeTree made;
  made.file("/boot/grub/grub.cfg", config).file("/boot/grub/grubenv", grubenv(env_lines));
  return made;
}
std::string saved() {
  return debian_config({k57, k56, k55}, {.set_default = "${saved_entry}"});
}
// The release that boots next.
std::string boots(const MadeTree& made, bool lasting = false) {
  const Boot boot = made.boot();
  const Choice& choice = lasting ? boot.lasting : boot.next;
  if (!choice.known) return "unknown: " + choice.reason;
  return release_of(*entry_at(boot.menu, choice.path));
}

TEST(NextBoot, T0AnEmptyGrubenvBootsTheNewest) {
  EXPECT_EQ(boots(with(saved(), "")), k57);
}

TEST(NextBoot, T1ThePinIsBooted) {
  const auto made = with(saved(), "saved_entry=" + debian_path(k55) + "\n");
  EXPECT_EQ(boots(made), k55);
  EXPECT_EQ(next_of(made.boot()), debian_path(k55));
  EXPECT_THAT(made.boot().next.reason, HasSubstr("saved_entry in grubenv names"));
}

TEST(NextBoot, T2AOneShotIsForOneBoot) {
  const auto made = with(saved(), "saved_entry=" + debian_path(k55) + "\nnext_entry=" + debian_path(k56) + "\n");
  EXPECT_EQ(boots(made), k56);
  EXPECT_EQ(boots(made, true), k55);
  EXPECT_THAT(made.boot().next.reason, HasSubstr("next_entry in grubenv asks for"));
  EXPECT_FALSE(made.boot().afterwards);
}

TEST(NextBoot, T4ANumberMovesWithTheKernels) {
  EXPECT_EQ(boots(with(debian_config({k56, k55}, {.set_default = "1>2"}), "")), k55);
  EXPECT_EQ(boots(with(debian_config({k57, k56, k55}, {.set_default = "1>2"}), "")), k56);
}

TEST(NextBoot, T5AnIdWithoutItsSubmenuIsNotFound) {
  const auto made = with(saved(), "saved_entry=" + debian_id(k55) + "\n");
  EXPECT_EQ(boots(made), k57);
  EXPECT_THAT(made.boot().next.reason, HasSubstr("has no such entry; GRUB takes the first one"));
}

TEST(NextBoot, T6TitlesWorkToo) {
  const auto made =
      with(saved(), "saved_entry=Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux " + k55 + "\n");
  EXPECT_EQ(next_of(made.boot()), debian_path(k55));
}

TEST(NextBoot, T7AKernelThatIsGoneFallsToTheFirstOfItsSubmenu) {
  const auto made =
      with(debian_config({k57, k56}, {.set_default = "${saved_entry}"}), "saved_entry=" + debian_path(k55) + "\n");
  EXPECT_EQ(next_of(made.boot()), debian_path(k57));
}

TEST(NextBoot, T8NonsenseBehindAnExistingSubmenuBootsThatSubmenusFirst) {
  const auto made = with(saved(), "saved_entry=" + debian_path(k55) + "\nnext_entry=" +
                                      debian_path(k55).substr(0, debian_path(k55).find('>')) + ">nonsense\n");
  EXPECT_EQ(next_of(made.boot()), debian_path(k57));
  EXPECT_EQ(boots(made, true), k55);
}

TEST(NextBoot, T9ADamagedGrubenvBootsTheNewest) {
  MadeTree made;
  made.file("/boot/grub/grub.cfg", saved());
  EXPECT_EQ(boots(made), k57);  // missing
  made.file("/boot/grub/grubenv", "");
  EXPECT_EQ(boots(made), k57);
  made.file("/boot/grub/grubenv", std::string(1024, '\0'));
  EXPECT_EQ(boots(made), k57);
  made.file(
      "/boot/grub/grubenv",
      ("# GRUB Environment Block\nsaved_entry=" + debian_path(k55) + "\n" + std::string(400, '#')).substr(0, 500));
  EXPECT_EQ(boots(made), k55);  // 500 bytes with a good header still work
}

TEST(NextBoot, T12SavedefaultMakesAOneShotPermanent) {
  const auto made = with(debian_config({k57, k56, k55}, {.set_default = "${saved_entry}", .savedefault = true}),
                         "saved_entry=" + debian_path(k55) + "\nnext_entry=" + debian_path(k56) + "\n");
  EXPECT_EQ(boots(made), k56);
  const Boot boot = made.boot();
  ASSERT_TRUE(boot.afterwards);  // boot_once is not seen in the submenu, so savedefault saves the trial
  EXPECT_EQ(path_text(boot.menu, boot.afterwards->path), debian_path(k56));
}

TEST(NextBoot, SavedefaultOfATopLevelEntryRespectsTheOneShot) {
  const auto made = with(debian_config({k57, k56, k55}, {.set_default = "${saved_entry}", .savedefault = true}),
                         "saved_entry=" + debian_path(k55) + "\nnext_entry=" + kSimple + "\n");
  const Boot boot = made.boot();
  EXPECT_EQ(next_of(boot), kSimple);
  EXPECT_FALSE(boot.afterwards);
}

TEST(NextBoot, T13ANumberInTheConfigurationDefeatsSavedEntry) {
  EXPECT_EQ(boots(with(debian_config({k57, k56, k55}), "saved_entry=" + debian_path(k55) + "\n")), k57);
}

TEST(NextBoot, T14WithoutSubmenuTheBareIdIsRight) {
  const std::string config = debian_config({k57, k56, k55}, {.set_default = "${saved_entry}", .submenu = false});
  EXPECT_EQ(boots(with(config, "saved_entry=" + debian_path(k55) + "\n")), k57);
  EXPECT_EQ(boots(with(config, "saved_entry=" + debian_id(k55) + "\n")), k55);
}

TEST(NextBoot, T15PrevSavedEntryComesBackAtTheSecondBoot) {
  const auto made = with(saved(), "saved_entry=" + debian_path(k55) + "\nprev_saved_entry=" + debian_path(k56) + "\n");
  EXPECT_EQ(boots(made), k55);
  EXPECT_EQ(boots(made, true), k56);
}

TEST(NextBoot, T18AnIdThatBeginsWithADigitIsANumber) {
  const std::string top = "menuentry 'Pinned' --id '6.1-pinned' {\n linux /boot/vmlinuz-" + k55 + "\n}\n";
  const std::string last = debian_config({k57, k56}, {.set_default = "6.1-pinned", .submenu = false}) + top;
  MadeTree made = with(last, "");
  made.file("/etc/os-release", "ID=debian\n");
  EXPECT_EQ(boots(made), k57);
  MadeTree letter = with(debian_config({k57, k56}, {.set_default = "ghd-pinned", .submenu = false}) +
                             "menuentry 'Pinned' --id 'ghd-pinned' {\n linux /boot/vmlinuz-" + k55 + "\n}\n",
                         "");
  EXPECT_EQ(boots(letter), k55);
}

TEST(NextBoot, WhoseGrubItIsDecidesAboutADigitAndWithoutKnowingThereIsNoAnswer) {
  const std::string config = debian_config({k57}, {.set_default = "1-pinned"}) +
                             "menuentry 'Pinned' --id '1-pinned' {\n linux /boot/vmlinuz-" + k55 + "\n}\n";
  MadeTree made = with(config, "");
  EXPECT_THAT(boots(made), HasSubstr("unknown"));
  made.file("/etc/os-release", "ID=fedora\n");
  EXPECT_EQ(boots(made), k55);
  made.file("/etc/os-release", "ID=debian\n");
  EXPECT_EQ(next_of(made.boot()), debian_path(k57));  // entry 1 is the submenu
}

TEST(NextBoot, C5EntryZeroIsWhereGrubFalls) {
  const std::string top = "menuentry 'Pinned kernel' --id 'rig-pinned' {\n\tlinux /boot/vmlinuz-" + k55 + " ro\n}\n";
  const std::string config = debian_config({k56, k55}, {.set_default = "${saved_entry}", .on_top = top});
  MadeTree zeroed;
  zeroed.file("/boot/grub/grub.cfg", config).file("/boot/grub/grubenv", std::string(1024, '\0'));
  EXPECT_EQ(boots(zeroed), k55);                                                  // a
  EXPECT_EQ(boots(with(config, "saved_entry=" + debian_path("x") + "\n")), k56);  // b: the submenu's first
  EXPECT_EQ(boots(with(config, "saved_entry=nonsense\n")), k55);                  // c
}

TEST(NextBoot, AnExternalEnvironmentBlockHidesTheChoice) {
  const auto made = with(saved(), "env_block=512+1\n");
  const Boot boot = made.boot();
  EXPECT_EQ(next_of(boot), "unknown");
  EXPECT_THAT(boot.next.reason, HasSubstr("only GRUB knows"));
}

TEST(NextBoot, ConditionsOnThePlatformDecideOnlyWhenItIsKnown) {
  const std::string config =
      "set default=\"0\"\nset timeout=5\nif [ \"$grub_platform\" = \"efi\" ]; then\nmenuentry fw --id fw { fwsetup "
      "}\nfi\n"
      "menuentry a --id a { linux /vmlinuz-1.2.3 }\n";
  MadeTree made;
  made.file("/boot/grub/grub.cfg", config);
  EXPECT_EQ(next_of(made.boot()), "unknown");
  made.file("/boot/grub/i386-pc/normal.mod", "x");
  EXPECT_EQ(next_of(made.boot()), "a");
}

TEST(NextBoot, BothWaysLeadingToTheSameDefaultIsKnown) {
  MadeTree made;
  made.file("/boot/grub/grub.cfg",
            "if [ \"$grub_platform\" = efi ]; then set default=b; else set default=b; fi\nset timeout=1\n"
            "menuentry a --id a { linux /vmlinuz-1.2.3 }\nmenuentry b --id b { linux /vmlinuz-1.2.4 }\n");
  EXPECT_EQ(next_of(made.boot()), "b");
  made.file("/boot/grub/grub.cfg",
            "set default=a\nif hwmatch x; then set default=b; fi\nset timeout=1\n"
            "menuentry a --id a { linux /vmlinuz-1.2.3 }\nmenuentry b --id b { linux /vmlinuz-1.2.4 }\n");
  EXPECT_EQ(next_of(made.boot()), "unknown");
}

TEST(NextBoot, BootCounterThatRanOutTakesIndexOne) {
  const std::string config =
      "load_env\nset default=\"${saved_entry}\"\nif [ -n \"${boot_counter}\" -a \"${boot_success}\" = \"0\" ]; then\n"
      "  if  [ \"${boot_counter}\" = \"0\" -o \"${boot_counter}\" = \"-1\" ]; then\n    set default=1\n    set "
      "boot_counter=-1\n"
      "  else\n    decrement boot_counter\n  fi\n  save_env boot_counter\nfi\nset timeout=1\nblscfg\n";
  MadeTree made;
  made.file("/boot/grub2/grub.cfg", config);
  for (const std::string v : {"6.1.1-1.fc40", "6.1.2-1.fc40", "6.1.3-1.fc40"})
    made.file("/boot/loader/entries/m-" + v + ".conf", "title T\nversion " + v + "\nlinux /vmlinuz-" + v + "\n");
  made.file("/boot/grub2/grubenv", grubenv("saved_entry=m-6.1.1-1.fc40\nboot_counter=1\nboot_success=0\n"));
  EXPECT_EQ(next_of(made.boot()), "m-6.1.1-1.fc40");
  made.file("/boot/grub2/grubenv", grubenv("saved_entry=m-6.1.1-1.fc40\nboot_counter=0\nboot_success=0\n"));
  EXPECT_EQ(next_of(made.boot()), "m-6.1.2-1.fc40");
}

TEST(NextBoot, CustomConfigurationBesideIsRead) {
  auto made = with(debian_config({k57}), "");
  made.file("/boot/grub/custom.cfg",
            "set default=mine\nmenuentry Mine --id mine { linux /boot/vmlinuz-" + k55 + " }\n");
  EXPECT_EQ(next_of(made.boot()), "mine");
}

TEST(Entries, QuotingAndIds) {
  MadeTree made;
  made.file(
      "/boot/grub/grub.cfg",
      "menuentry \"A \\\"quoted\\\" \\$title\" --id='a>b' { linux /vmlinuz-1.2.3-x }\n"
      "menuentry 'It'\\''s' --class x $menuentry_id_option 'two words' { linux16 /vmlinuz-1.2.4 }\n"
      "menuentry Plain\\ title { linuxefi /vmlinuz-1.2.5.efi.signed }\n"
      "#menuentry 'commented' { linux /vmlinuz-9.9.9 }\n"
      "menuentry 'Two lines' \\\n  --id two { linux /vmlinuz-1.2.6 root=/dev/sda1 \\\n  quiet; initrd /i1 /i2 }\n");
  const Boot boot = made.boot();
  ASSERT_THAT(boot.menu, SizeIs(4));
  EXPECT_EQ(boot.menu[0].title, "A \"quoted\" $title");
  EXPECT_EQ(path_text(boot.menu, {0}), "a>>b");
  EXPECT_EQ(boot.menu[1].title, "It's");
  EXPECT_EQ(boot.menu[1].id, "two words");
  EXPECT_EQ(boot.menu[2].title, "Plain title");
  EXPECT_EQ(release_of(boot.menu[2]), "1.2.5");
  EXPECT_EQ(boot.menu[3].steps.arguments, "root=/dev/sda1 quiet");
  EXPECT_THAT(boot.menu[3].steps.initrds, ElementsAre("/i1", "/i2"));
}

TEST(Entries, ALinuxLineThatIsCommentedOutIsNotRead) {
  MadeTree made;
  made.file("/boot/grub/grub.cfg", "menuentry x {\n\tlinux /vmlinuz-1.2.3 a\n#\tlinux /vmlinuz-6.6.6 b\n}\n");
  EXPECT_EQ(release_of(made.boot().menu[0]), "1.2.3");
}

TEST(Entries, Kinds) {
  MadeTree made;
  made.file(
      "/boot/grub/grub.cfg",
      "menuentry xen --class xen { multiboot2 /boot/xen-4.17.gz dom0_mem=1G\nmodule2 /boot/vmlinuz-6.1.0-9 root=x\n}\n"
      "menuentry uki { chainloader /EFI/Linux/fedora-6.1.efi }\n"
      "menuentry windows --class windows { chainloader +1 }\n"
      "menuentry macos --id osprober-xnu-64-x { xnu_kernel64 /mach_kernel }\n"
      "menuentry mt { linux16 /boot/memtest86+x64.bin }\n"
      "menuentry fw { fwsetup }\n"
      "menuentry rescue { linux /vmlinuz-6.1.0-9 root=x systemd.unit=rescue.target }\n"
      "menuentry off { halt }\n"
      "menuentry ms { chainloader /EFI/Microsoft/Boot/bootmgfw.efi }\n"
      "menuentry singleton { linux /vmlinuz-6.1.0-9 root=/dev/single1 memtest }\n");
  EXPECT_THAT(lines(made),
              ElementsAre("xen|xen|6.1.0-9", "chainload|uki|", "other-os|windows|", "other-os|osprober-xnu-64-x|",
                          "memtest|mt|", "firmware|fw|", "recovery|rescue|6.1.0-9", "unknown|off|", "other-os|ms|",
                          "linux|singleton|6.1.0-9"));
}

TEST(Entries, AnImageThatIsThereTellsTheReleaseThatItsNameDoesNot) {
  MadeTree made;
  made.file("/boot/grub/grub.cfg", "menuentry 'Arch Linux' --id arch { linux /vmlinuz-linux root=x }\n");
  EXPECT_THAT(lines(made), ElementsAre("linux|arch|"));
  made.file("/boot/vmlinuz-linux", test::kernel_image("7.0.12-arch1-1"));
  EXPECT_THAT(lines(made), ElementsAre("linux|arch|7.0.12-arch1-1"));
}

TEST(Entries, AMenuWithMistakesIsReadAsFarAsItGoes) {
  MadeTree made;
  made.file("/boot/grub/grub.cfg", "fi\n}\nmenuentry a { linux /vmlinuz-1.2.3 }\nif true; then\nmenuentry b {");
  const Boot boot = made.boot();
  ASSERT_THAT(boot.menu, SizeIs(2));
  EXPECT_FALSE(boot.next.known);
  EXPECT_THAT(boot.warnings, testing::Contains(HasSubstr("closes nothing")));
}

TEST(Entries, LinksLeadNoFurtherThanTheRoot) {
  MadeTree made;
  made.link("/boot/grub/grub.cfg", "/../../../../../../../etc/grub-of-host.cfg");
  made.file("/etc/grub-of-host.cfg", "menuentry 'In the tree' { linux /vmlinuz-1.2.3 }\n");
  EXPECT_THAT(lines(made), ElementsAre("linux|In the tree|1.2.3"));
}

struct LoaderCase {
  std::string file;
  std::string name;
};
class OtherLoaders : public testing::TestWithParam<LoaderCase> {};

TEST_P(OtherLoaders, AreRecognisedAndRefused) {
  MadeTree made;
  made.file(GetParam().file, "x\n");
  const Boot boot = made.boot();
  EXPECT_EQ(boot.loader, Loader::Unknown);
  EXPECT_EQ(boot.unsupported, GetParam().name);
  EXPECT_THAT(boot.refusal, HasSubstr(GetParam().name));
  EXPECT_FALSE(boot.next.known);
}
INSTANTIATE_TEST_SUITE_P(All, OtherLoaders,
                         testing::Values(LoaderCase{"/boot/limine.conf", "limine"},
                                         LoaderCase{"/boot/efi/EFI/refind/refind.conf", "refind"},
                                         LoaderCase{"/boot/extlinux/extlinux.conf", "extlinux"},
                                         LoaderCase{"/efi/EFI/Linux/arch-linux.efi", "uki"},
                                         LoaderCase{"/boot/grub/menu.lst", "grub-legacy"}),
                         [](const auto& tested) {
                           std::string name = tested.param.name;
                           std::erase(name, '-');
                           return name;
                         });

TEST(OtherLoader, ANetworkBootIsSeenInTheCommandLine) {
  MadeTree made;
  made.file("/proc/cmdline", "BOOT_IMAGE=vmlinuz BOOTIF=01-aa root=/dev/nfs nfsroot=1.2.3.4:/x\n");
  EXPECT_EQ(made.boot().unsupported, "pxe");
}

TEST(OtherLoader, NothingAtAllSaysSo) {
  MadeTree made;
  made.file("/boot/vmlinuz-1.2.3", "x");
  EXPECT_THAT(made.boot().refusal, HasSubstr("is /boot (or the EFI partition) mounted?"));
}

TEST(OtherLoader, GrubBesideSystemdBootIsAnOpenQuestion) {
  MadeTree made;
  made.file("/boot/grub/grub.cfg", debian_config({k57})).file("/boot/efi/EFI/debian/grubx64.efi", "x");
  EXPECT_TRUE(made.boot().next.known);
  made.file("/boot/efi/EFI/systemd/systemd-bootx64.efi", "x");
  const Boot boot = made.boot();
  EXPECT_FALSE(boot.next.known);
  EXPECT_THAT(boot.refusal, HasSubstr("both GRUB and systemd-boot"));
}

TEST(OtherLoader, OstreeIsListedAndLeftAlone) {
  MadeTree made;
  made.file("/boot/grub2/grub.cfg", "set timeout=1\nblscfg\n").file("/ostree/repo/config", "x");
  made.file("/boot/loader/entries/ostree-1.conf",
            "title Fedora\nversion 1\nlinux /ostree/f-1/vmlinuz-6.1.2-1.fc40.x86_64\n");
  const Boot boot = made.boot();
  EXPECT_EQ(next_of(boot), "ostree-1");
  EXPECT_THAT(boot.refusal, HasSubstr("ostree"));
}

}  // namespace
}  // namespace gpuhealth::grub
