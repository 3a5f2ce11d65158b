# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Completion for dapxctl, dapx-ping, dapx-perf and dapx-run: installed under each of these names, where bash-completion
# looks. Commands and options are those that --help lists, so none is forgotten here.

# _dapx_options HELP: "-j --json ..."
_dapx_options() { sed -n 's/^  \(-[^ ]*\).*/\1/p' <<<"$1" | tr ',' ' '; }

# _dapx_commands HELP
_dapx_commands() { sed -n '/^Subcommands:/,$s/^  \([a-z][a-z-]*\) .*/\1/p' <<<"$1"; }

# _dapx_takes_value HELP OPTION: TYPE stands behind it in the help
_dapx_takes_value() { grep -qE -e "^  ([^ ]*,)?$2(,[^ ]*)? [A-Z]+([ :=]|\$)" <<<"$1"; }

# _dapx_names FOLDER...: of what is in them
_dapx_names() {
	local entry
	for entry; do
		[[ ! -e $entry ]] || echo "${entry##*/}"
	done
}

# _dapx_values COMMAND OPTION: what it may be followed by, if that can be known; fails if not
_dapx_values() {
	case $2 in
	-d|--device) _dapx_names /sys/class/infiniband/* ;;
	--test) echo latency rate bandwidth ;;
	--op) if [[ $1 = dapx-ping ]]; then echo send write read fetch-add; else echo send write read; fi ;;
	--pid) _dapx_names /proc/[0-9]* ;;
	*) return 1 ;;
	esac
}

# _dapx_operands "COMMAND SUBCOMMAND..." HELP: what stands without an option
_dapx_operands() {
	local parent
	case $1 in
	"dapxctl show") sed -n 's/^  class [^{]*{\([^}]*\)}.*/\1/p' <<<"$2" | tr ',' ' ' ;;
	"dapxctl rxe add") _dapx_names /sys/class/net/* ;;
	"dapxctl rxe del")
		for parent in /sys/class/infiniband/*/parent; do
			_dapx_names "${parent%/parent}"
		done ;;
	dapx-run) compgen -c | sort -u ;;
	dapx-ping|dapx-perf) compgen -A hostname ;;
	esac
}

_dapx() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command=${1##*/} path=() help word words
	COMPREPLY=()
	help=$("$1" --help 2>/dev/null) || return 0
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		[[ $word != -* ]] || continue
		# From the program's name on, it is that program's command line.
		[[ $command != dapx-run ]] || return 0
		grep -qxF -e "$word" <<<"$(_dapx_commands "$help")" || continue
		path+=("$word")
		help=$("$1" "${path[@]}" --help 2>/dev/null) || return 0
	done
	if [[ $prev = -* && $cur != -* ]] && _dapx_takes_value "$help" "$prev"; then
		case $prev in
		--file|--output|--domain) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
		--library-folder) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
		*) words=$(_dapx_values "$command" "$prev") && mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur") ;;
		esac
		return 0
	fi
	if [[ $cur = -* ]]; then
		words=$(_dapx_options "$help")
	else
		words="$(_dapx_commands "$help") $(_dapx_operands "$command${path[*]:+ ${path[*]}}" "$help")"
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _dapx dapxctl dapx-ping dapx-perf
# A program's arguments are files, as far as is known here.
complete -o default -F _dapx dapx-run
