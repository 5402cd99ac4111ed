# SPDX-License-Identifier: Apache-2.0
set -l commands status devices watch history conditions explain acknowledge doctor inspect kernel decode-metrics classify-log
complete -c gpuhealthctl -f
complete -c gpuhealthctl -n "not __fish_seen_subcommand_from $commands" -a "$commands"
complete -c gpuhealthctl -l json -d 'print JSON'
complete -c gpuhealthctl -l bus -x -d 'D-Bus address'
complete -c gpuhealthctl -l color -x -a 'auto always never' -d 'when to use colour'
complete -c gpuhealthctl -s q -l quiet -d 'print nothing but errors'
complete -c gpuhealthctl -l version -d 'print the version'
complete -c gpuhealthctl -s h -l help -d 'print help'
complete -c gpuhealthctl -n '__fish_seen_subcommand_from watch' -l interval -x -d 'seconds between two looks'
complete -c gpuhealthctl -n '__fish_seen_subcommand_from history' -l device -x -d 'one GPU'
complete -c gpuhealthctl -n '__fish_seen_subcommand_from history' -l since -x -a '1h 24h 7d 30d' -d 'from'
complete -c gpuhealthctl -n '__fish_seen_subcommand_from history' -l until -x -d 'to'
complete -c gpuhealthctl -n '__fish_seen_subcommand_from history' -l width -x -d 'columns'
complete -c gpuhealthctl -n '__fish_seen_subcommand_from history' -l height -x -d 'rows'
complete -c gpuhealthctl -n '__fish_seen_subcommand_from conditions' -l all -d 'also those that are over'
complete -c gpuhealthctl -n '__fish_seen_subcommand_from conditions' -l since -x -a '24h 7d 30d' -d 'also those over since then'
complete -c gpuhealthctl -n '__fish_seen_subcommand_from inspect' -l sysroot -x -a '(__fish_complete_directories)' -d 'folder that holds sys'
complete -c gpuhealthctl -n '__fish_seen_subcommand_from decode-metrics' -F -l type -x -a 'gpu_metrics gpuboard_temp baseboard_temp partition' -d 'kind of file'
complete -c gpuhealthctl -n '__fish_seen_subcommand_from classify-log' -F
complete -c gpuhealthctl -n '__fish_seen_subcommand_from kernel' -a 'list status advisories safe-to-update plan pin unpin trial bless hold protect log'
complete -c gpuhealthctl -n '__fish_seen_subcommand_from kernel' -l root -x -a '(__fish_complete_directories)' -d 'folder with boot, etc and lib'
complete -c gpuhealthctl -n '__fish_seen_subcommand_from kernel' -l advisories -x -a '(__fish_complete_directories)' -d 'folder of advisories'
complete -c gpuhealthctl -n '__fish_seen_subcommand_from kernel' -l expires -x -d 'when the pin ends'
