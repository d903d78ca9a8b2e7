# Read by a zsh that Shellyard starts at a terminal, in place of the person's .zshenv, which it reads
# itself. What is left of it then is a function that ends each prompt with a mark of this session.
# Words in quotes are no aliases, whatever /etc/zsh/zshenv has made one.
'builtin' 'typeset' '-g' _shellyard_dir="$ZDOTDIR" _shellyard_mark="$SHELLYARD_MARK"
if [[ -n "${SHELLYARD_ZDOTDIR+x}" ]]; then
    'builtin' 'export' ZDOTDIR="$SHELLYARD_ZDOTDIR"
else
    'builtin' 'unset' 'ZDOTDIR'
fi
'builtin' 'unset' 'SHELLYARD_MARK' 'SHELLYARD_ZDOTDIR'
{
    if [[ -r "${ZDOTDIR-$HOME}/.zshenv" ]]; then
        'builtin' 'source' "${ZDOTDIR-$HOME}/.zshenv"
    fi
} always {
    if [[ -o 'interactive' ]]; then
        _shellyard_prompt() {
            'builtin' 'emulate' '-L' 'zsh'
            # The last one, from the next prompt on: others may set it.
            if [[ "${precmd_functions[-1]}" != '_shellyard_prompt' ]]; then
                precmd_functions=("${(@)precmd_functions:#_shellyard_prompt}" '_shellyard_prompt')
            fi
            if [[ "$PS1" != *"sy=$_shellyard_mark"* ]]; then
                PS1+=$'%{\e]133;B;sy='"$_shellyard_mark"$'\a%}'
            fi
        }
        'builtin' 'typeset' '-ga' 'precmd_functions'
        precmd_functions+=('_shellyard_prompt')
    else
        # It only starts the one that reads what is typed, for which all stands as before.
        if [[ -n "${ZDOTDIR+x}" ]]; then
            'builtin' 'export' SHELLYARD_ZDOTDIR="$ZDOTDIR"
        fi
        'builtin' 'export' ZDOTDIR="$_shellyard_dir" SHELLYARD_MARK="$_shellyard_mark"
    fi
    'builtin' 'unset' '_shellyard_dir'
}
