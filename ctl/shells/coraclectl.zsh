#compdef coraclectl
# SPDX-License-Identifier: Apache-2.0
# zsh completion for coraclectl
_coraclectl() {
  local -a reply items
  local bits entry
  reply=("${(@f)$(${words[1]} __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  bits=${reply[-1]#:}
  reply[-1]=()
  if (( ${bits:-0} & 2 )); then
    [[ $PREFIX == --*=* ]] && compset -P '*='
    _files
    return
  fi
  for entry in $reply; do
    if [[ $entry == *$'\t'* ]]; then
      items+=("${${entry%%$'\t'*}//:/\\:}:${entry#*$'\t'}")
    else
      items+=("${entry//:/\\:}")
    fi
  done
  (( $#items )) || return 1
  if (( bits & 1 )); then _describe -t words coraclectl items -S ''; else _describe -t words coraclectl items; fi
}
if [[ $funcstack[1] == _coraclectl ]]; then _coraclectl "$@"; else compdef _coraclectl coraclectl; fi
