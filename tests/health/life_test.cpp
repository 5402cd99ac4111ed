// SPDX-License-Identifier: Apache-2.0
#include "health/life.hpp"

#include <gtest/gtest.h>

namespace gpuhealth::health {
namespace {

using namespace std::chrono_literals;

class LifeOf {
 public:
  std::optional<ChangeKind> see(Verdict::Kind kind, Duration after = 1s, bool gap = false) {
    now_.steady = now_.steady + after;
    now_.wall += after;
    Verdict verdict;
    verdict.kind = kind;
    const auto step = gap ? std::nullopt : std::optional(after);
    const auto change = life.see(verdict, {ConditionType::SmuDead, "uid-1", "GPU", "boot"}, {now_, step}, pace);
    return change ? std::optional(change->kind) : std::nullopt;
  }
  Life life;
  Pace pace{3s, 3s, 120s, 600s, 60s};

 private:
  Now now_;
};
using enum Verdict::Kind;

TEST(Life, UnknownNeitherResetsNorAdvancesTheTimeToConfirm) {
  LifeOf it;
  EXPECT_EQ(it.see(Bad), ChangeKind::Raised);
  EXPECT_EQ(it.see(Bad), std::nullopt);      // 1 s
  EXPECT_EQ(it.see(Unknown), std::nullopt);  // 1 s
  EXPECT_EQ(it.see(Unknown), std::nullopt);
  EXPECT_EQ(it.see(Unknown), std::nullopt);
  EXPECT_EQ(it.see(Bad), std::nullopt);  // 2 s
  EXPECT_EQ(it.see(Bad), ChangeKind::Confirmed);
}

TEST(Life, GoodEndsARaisedConditionAtOnce) {
  LifeOf it;
  EXPECT_EQ(it.see(Bad), ChangeKind::Raised);
  EXPECT_EQ(it.see(Good), ChangeKind::Cleared);
  EXPECT_EQ(it.see(Good), std::nullopt);
}

TEST(Life, BadResetsTheTimeToClear) {
  LifeOf it;
  for (int i = 0; i < 4; ++i) it.see(Bad);
  ASSERT_EQ(it.life.open()->state, ConditionState::Confirmed);
  EXPECT_EQ(it.see(Good), std::nullopt);
  EXPECT_EQ(it.see(Good), std::nullopt);
  EXPECT_EQ(it.see(Bad), std::nullopt);
  EXPECT_EQ(it.see(Good), std::nullopt);
  EXPECT_EQ(it.see(Good), std::nullopt);
  EXPECT_EQ(it.see(Unknown), std::nullopt);
  EXPECT_EQ(it.see(Good), std::nullopt);
  EXPECT_EQ(it.see(Good), ChangeKind::Cleared);
}

TEST(Life, AGapCountsForNeitherSide) {
  LifeOf it;
  it.see(Bad);
  it.see(Bad);
  EXPECT_EQ(it.see(Bad, 100s, true), std::nullopt);
  EXPECT_EQ(it.see(Bad), std::nullopt);
  EXPECT_EQ(it.see(Bad), std::nullopt);
  EXPECT_EQ(it.see(Bad), ChangeKind::Confirmed);
  it.see(Good);
  EXPECT_EQ(it.see(Good, 1h, true), std::nullopt);
}

TEST(Life, ARaisedConditionAfterALongGapBeginsAnew) {
  LifeOf it;
  it.see(Bad);
  const auto id = it.life.open()->id;
  EXPECT_EQ(it.see(Bad, 1h, true), ChangeKind::Cleared);
  EXPECT_EQ(it.see(Bad), ChangeKind::Raised);
  EXPECT_NE(it.life.open()->id, id);
}

TEST(Life, WithNothingToWaitForItIsConfirmedAtOnceAndClearedAtOnce) {
  LifeOf it;
  it.pace.confirm_after = it.pace.clear_after = 0s;
  EXPECT_EQ(it.see(Bad), ChangeKind::Confirmed);
  EXPECT_EQ(it.see(Good), ChangeKind::Cleared);
}

}  // namespace
}  // namespace gpuhealth::health
