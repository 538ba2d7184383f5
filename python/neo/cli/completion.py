"""``neo completion``."""

from __future__ import annotations

import argparse

HELP = 'write the completion of a shell: eval "$(neo completion bash)"'

_BASH = """_neo() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{commands}"
  else
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _neo neo
"""
_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    command.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(options: argparse.Namespace) -> None:
    """Print the script, made of the parser itself."""
    commands = next(a for a in options.parser._actions if isinstance(a, argparse._SubParsersAction)).choices
    words = {name: [flag for a in c._actions for flag in a.option_strings] for name, c in commands.items()}
    for name, command in commands.items():
        for action in command._actions:
            if isinstance(action, argparse._SubParsersAction):
                words[name] += action.choices
            elif action.choices:
                words[name] += map(str, action.choices)
    if options.shell == "fish":
        print(f"complete -c neo -n __fish_use_subcommand -a '{' '.join(commands)}'")
        for name, given in words.items():
            print(f"complete -c neo -n '__fish_seen_subcommand_from {name}' -a '{' '.join(given)}'")
        return
    cases = "\n".join(f'      {name}) words="{" ".join(given)}" ;;' for name, given in words.items())
    print((_ZSH if options.shell == "zsh" else "") + _BASH.format(commands=" ".join(commands), cases=cases), end="")
