# SPDX-License-Identifier: Apache-2.0
# fish completion for coraclectl
function __coraclectl_words
    set -l words (commandline -opc) (commandline -ct)
    set -l reply ($words[1] __complete $words[2..-1] 2>/dev/null)
    test (count $reply) -gt 0; or return
    set -l bits (string replace ':' '' -- $reply[-1])
    if test (math "$bits % 4") -ge 2
        __fish_complete_path (commandline -ct)
    else if test (count $reply) -gt 1
        printf '%s\n' $reply[1..-2]
    end
end
complete -c coraclectl -f -a '(__coraclectl_words)'
