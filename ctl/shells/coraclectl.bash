# SPDX-License-Identifier: Apache-2.0
# bash completion for coraclectl
# Bash takes ':' and '=' for the ends of words; the whole words are read from the line itself, and the part in front of
# the last such sign is cut off from what is offered, since bash keeps it.
_coraclectl() {
  local line=${COMP_LINE:0:COMP_POINT} words reply bits word current cut i
  read -ra words <<<"$line"
  case $line in *[[:space:]]) words+=("") ;; esac
  type -P "${words[0]}" >/dev/null || words[0]=coraclectl
  mapfile -t reply < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
  COMPREPLY=()
  [ ${#reply[@]} -gt 0 ] || return
  bits=${reply[-1]#:}
  unset 'reply[-1]'
  current=${words[-1]}
  if ((bits & 2)); then
    case $current in --*=*) current=${current#*=} ;; esac
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    return
  fi
  cut=
  for ((i = ${#current}; i > 0; i--)); do
    case ${current:i-1:1} in
      [=:]) case $COMP_WORDBREAKS in *"${current:i-1:1}"*) cut=${current:0:i}; break ;; esac ;;
    esac
  done
  for word in "${reply[@]}"; do
    word=${word%%$'\t'*}
    COMPREPLY+=("${word#"$cut"}")
  done
  if ((bits & 1)); then compopt -o nospace 2>/dev/null; fi
}
complete -F _coraclectl coraclectl
