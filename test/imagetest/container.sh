# container.sh ROOT STATE COMMAND...: runs a command with, in a mount namespace of its own, the folder ROOT read-only,
# but for ROOT/STATE, and /proc mounted in it, as a container's is. The command is to make ROOT its root.
set -eu
root=$1 state=$2
shift 2
mkdir -p "$root/proc"
mount --bind "$root" "$root"
mount --bind "$root$state" "$root$state"
mount --rbind /proc "$root/proc"
mount -o remount,bind,ro "$root"
exec "$@"
