"""`mngr completion SHELL`: a script that teaches bash, zsh or fish to complete mngr's words.

The scripts know nothing about verbs: they hand the words to `mngr complete` (cli/complete.py) and its answer to the
shell, so they need not be renewed when mngr changes. What they never do is evaluate a word that is being typed."""

from __future__ import annotations

import sys

from mngr.cli.complete import SHELLS
from mngr.errors import UsageError
from mngr.grammar import Args, Argument, command


@command(
    "completion",
    summary="print a completion script for a shell",
    usage=("completion bash|zsh|fish",),
    about="""
        The script completes verbs, options, the names of agents and whatever else mngr knows without asking a host.
        Have your shell read it at start-up:

          bash, in ~/.bashrc:                  source <(mngr completion bash)
          zsh, in ~/.zshrc:                    source <(mngr completion zsh)
          fish, in ~/.config/fish/config.fish: mngr completion fish | source

        It asks mngr for everything else, so it stays right when mngr is upgraded or gets a plugin.
        """,
    arguments=[Argument(name="SHELL", help="bash, zsh or fish", completes="shells")],
    examples=[
        ("source <(mngr completion bash)", "complete in this bash from now on"),
        (
            "mngr completion fish > ~/.config/fish/completions/mngr.fish",
            "install it for fish, which reads it when needed",
        ),
    ],
)
def completion(args: Args) -> int:
    shell = args.word(0) or ""
    if shell not in _SCRIPTS:
        from mngr.address import nearest

        close = nearest(shell, list(SHELLS))
        raise UsageError(
            f"there is no completion for {shell!r}",
            f"did you mean {close}?" if close else f"one of {', '.join(SHELLS)}",
        )
    sys.stdout.write(_SCRIPTS[shell])
    return 0


_BASH = r"""# Completion of mngr for bash 3.2 and later: source <(mngr completion bash)
_mngr() {
    local line=${COMP_LINE:0:COMP_POINT} word blank current special='' prefix='' breaks='' i
    local -a words
    words=()
    COMPREPLY=()

    # bash has split the line at every : = and @ too. Pieces with no blank between them are one word.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        blank=${line%%[![:space:]]*}
        line=${line#"$blank"}
        word=${COMP_WORDS[i]}
        ((i < COMP_CWORD)) || word=$line
        if ((i == 0)) || [[ -n $blank ]]; then
            words+=("$word")
        else
            words[${#words[@]} - 1]+=$word
        fi
        line=${line#"$word"}
    done
    current=${words[${#words[@]} - 1]}
    [[ $current == [\"\']* ]] && current=${current:1}
    words[${#words[@]} - 1]=$current

    # It will replace only what follows the last of them, so that much of every candidate must go.
    for word in : = @; do
        [[ $COMP_WORDBREAKS == *"$word"* ]] && breaks+=$word
    done
    [[ -n $breaks ]] && prefix=${current%"${current##*["$breaks"]}"}

    while IFS= read -r line; do
        case $line in
            :files | :dirs) special=$line ;;
            *)
                COMPREPLY+=("${line#"$prefix"}")
                [[ $line == *[:=.] ]] && compopt -o nospace 2>/dev/null
                ;;
        esac
    done < <(command mngr complete -- "${words[@]:1}" 2>/dev/null)

    [[ -n $special ]] || return 0
    if ((${#COMPREPLY[@]} == 0)); then
        # Alone, files are best left to bash, which knows about quotes and tildes.
        [[ $special == :dirs ]] && compopt -o dirnames 2>/dev/null && return 0
        [[ $special == :files ]] && compopt -o default 2>/dev/null && return 0
    fi
    word=-f
    [[ $special == :dirs ]] && word=-d
    while IFS= read -r line; do
        if [[ -d $line ]]; then
            line+=/
            compopt -o nospace 2>/dev/null
        fi
        COMPREPLY+=("$line")
    done < <(compgen "$word" -- "${current#"$prefix"}")
}
complete -F _mngr mngr
"""

_ZSH = r"""#compdef mngr
# Completion of mngr for zsh: source <(mngr completion zsh), or save it as _mngr in a directory of $fpath
_mngr() {
    local line word special
    local -a before closed open
    local found=1

    before=("${(@Q)words[2,CURRENT-1]}")
    for line in "${(@f)$(command mngr complete --describe -- "$before[@]" "${(Q)PREFIX}" 2>/dev/null)}"; do
        case $line in
            ('') ;;
            (:files|:dirs) special=$line ;;
            (*)
                word=${line%%$'\t'*}
                line=${line#"$word"}
                line=${word//:/\\:}${line:+:${line#$'\t'}}
                # After NAME: KEY= and SECTION. the word goes on.
                if [[ $word == *[:=.] ]]; then open+=("$line"); else closed+=("$line"); fi
                ;;
        esac
    done

    (( $#closed )) && _describe -V mngr closed && found=0
    (( $#open )) && _describe -V mngr open -S '' && found=0
    [[ -n $special && $PREFIX == --*=* ]] && compset -P '*='
    case $special in
        (:files) _files && found=0 ;;
        (:dirs) _files -/ && found=0 ;;
    esac
    return found
}

if [[ $funcstack[1] == _mngr ]]; then
    _mngr "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
    compdef _mngr mngr
fi
"""

_FISH = r"""# Completion of mngr for fish: mngr completion fish | source
function __mngr_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l prefix (string match -r -- '^--[^=]*=' "$current")
    set -l path (string replace -r -- '^--[^=]*=' '' "$current")
    for line in (command mngr complete --describe -- $words[2..] "$current" 2>/dev/null)
        switch $line
            case :files
                printf "$prefix%s\n" (__fish_complete_path "$path")
            case :dirs
                printf "$prefix%s\n" (__fish_complete_directories "$path" '')
            case '*'
                printf '%s\n' $line
        end
    end
end
complete -c mngr -f -a '(__mngr_complete)'
"""

_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
