# SPDX-License-Identifier: Apache-2.0
# bash completion for gpuhealthctl(1); a test checks that every command and option is here.

_gpuhealthctl_metrics() {
  printf '%s\n' temperature.edge temperature.junction temperature.memory power.average power.input power.cap clock.gfx \
    clock.memory fan.rpm voltage.gfx utilization.gfx utilization.memory vram.used gtt.used pcie.speed pcie.width \
    pcie.replays aer.correctable aer.nonfatal aer.fatal vram.bad_pages
}

_gpuhealthctl_devices() {
  gpuhealthctl devices --json 2>/dev/null | sed -n 's/^ *"pci": "\([0-9a-f:.]*\)".*/\1/p'
}

_gpuhealthctl_kernels() {
  gpuhealthctl kernel list --json 2>/dev/null | sed -n 's/^ *"release": "\([^"]*\)".*/\1/p' | sort -u
}

_gpuhealthctl_actions() {
  printf '%s\n' notify collect-evidence run-hook drain slurm-drain power-cap pcie-speed performance-level power-profile \
    clock-cap gpu-reset pci-rescan kernel-pin kernel-trial kernel-hold reboot
}

_gpuhealthctl_conditions() {
  gpuhealthctl conditions --json 2>/dev/null | sed -n 's/^      "id": "\([^"]*\)".*/\1/p'
}

_gpuhealthctl_types() {
  printf '%s\n' overheating thermal-throttling power-throttling clocks-stuck-low pcie-downgraded pcie-errors vram-evicted \
    gpu-missing source-stuck smu-dead driver-missing gpu-hang reset-loop device-lost firmware-missing ras-uncorrectable ras-correctable \
    bad-pages host-copy-stall throughput-collapse performance-drift wrong-results canary-failing job-stalled job-fell-back-to-cpu
    vram-leak throttle-contradicted sources-disagree
}

_gpuhealthctl() {
  local cur prev words cword
  # Without its word breaks at ':' a PCI address stays one word.
  _init_completion -n : 2>/dev/null || { cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words=("${COMP_WORDS[@]}") cword=$COMP_CWORD; }

  local commands='status devices watch history conditions explain acknowledge doctor inspect kernel actions policy decode-metrics classify-log canary replay report check'
  local global='--json --bus --color --quiet --version --help'
  local command='' i
  for ((i = 1; i < cword; ++i)); do
    case ${words[i]} in
      --bus | --color) ((++i)) ;;
      -*) ;;
      *)
        command=${words[i]}
        break
        ;;
    esac
  done

  case $prev in
    --color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")) && return ;;
    --device) COMPREPLY=($(compgen -W "$(_gpuhealthctl_devices)" -- "$cur")) && return ;;
    --since | --until) COMPREPLY=($(compgen -W '1h 24h 7d 30d' -- "$cur")) && return ;;
    --type) COMPREPLY=($(compgen -W 'gpu_metrics gpuboard_temp baseboard_temp partition' -- "$cur")) && return ;;
    --sysroot | --root | --advisories) COMPREPLY=($(compgen -d -- "$cur")) && return ;;
    --bus | --interval | --width | --height | --expires | --name | --serial | --rollout | --timeout) return ;;
    --html | --bundle) COMPREPLY=($(compgen -f -- "$cur")) && return ;;
    pin | trial | bless | protect | safe-to-update) [[ $command == kernel ]] && COMPREPLY=($(compgen -W "$(_gpuhealthctl_kernels)" -- "$cur")) && return ;;
    --tier) COMPREPLY=($(compgen -W '0 1 2 3' -- "$cur")) && return ;;
    --backend) COMPREPLY=($(compgen -W 'auto ioctl hip opencl cuda' -- "$cur")) && return ;;
    --gate) COMPREPLY=($(compgen -W 'strong weak' -- "$cur")) && return ;;
    --file | --save | --policy | --key | --output) COMPREPLY=($(compgen -f -- "$cur")) && return ;;
  esac

  local own=''
  case $command in
    '') own=$commands ;;
    devices) own=$(_gpuhealthctl_devices) ;;
    watch) own='--interval' ;;
    history) own="$(_gpuhealthctl_metrics) --device --since --until --width --height" ;;
    conditions) own='--all --since' ;;
    explain) own="$(_gpuhealthctl_types) $(_gpuhealthctl_conditions)" ;;
    acknowledge) own=$(_gpuhealthctl_conditions) ;;
    inspect) own='--sysroot --vendor' ;;
    classify-log) [[ $cur == -* ]] || { COMPREPLY=($(compgen -f -- "$cur")) && return; } ;;
    kernel) own='list status advisories safe-to-update plan pin unpin trial bless reject qualify wait hold protect log --root --advisories --expires --reason --reboot --timeout' ;;
    actions)
      own='list show confirm revert run resume --root --open --device --dry-run --confirm'
      [[ $prev == run ]] && own=$(_gpuhealthctl_actions)
      ;;
    policy)
      own='check test show schema bundle verify install rollback keygen --decisions --effective --root --output --name --serial --expires
        --rollout --key --unsigned --why'
      [[ $cur == -* || $prev == policy ]] || { COMPREPLY=($(compgen -f -- "$cur")) && return; }
      ;;
    canary)
      own='run accept list history compare baseline show reset --tier --only --backend --device --allow-cpu --local --save --bisect
        --file --metric --why --yes'
      ;;
    report) own='--since --html --bundle --keep-names --file' ;;
    check) own='--device --npd --timeout' ;;
    replay)
      own='--gate --policy'
      [[ $cur == -* ]] || { COMPREPLY=($(compgen -f -- "$cur")) && return; }
      ;;
    decode-metrics)
      own='--type'
      [[ $cur == -* ]] || { COMPREPLY=($(compgen -f -- "$cur")) && return; }
      ;;
  esac
  [[ $cur == -* ]] && own="$own $global"
  COMPREPLY=($(compgen -W "$own" -- "$cur"))
  declare -F __ltrim_colon_completions >/dev/null && __ltrim_colon_completions "$cur"
}
complete -F _gpuhealthctl gpuhealthctl
