#!/bin/sh
# Epilog=/etc/slurm/gpuhooks/epilog.sh in slurm.conf. A site copies this file and edits
# the next two lines if it installed elsewhere.
sbin=/usr/local/sbin
config=/etc/gpuhooks/gpuhooks.toml

# Status 1 means that the node must be drained and Slurm did not answer when the
# program asked for it, so that Slurm drains it. Whatever else happens to the
# program must not cost a node, so it counts as 0.
# To switch the hook off in a hurry: touch `off` beside the configuration file.

PATH=/usr/sbin:/usr/bin:/sbin:/bin # Slurm sets none
export PATH

"$sbin/gpu-epilog" --config "$config"
[ $? -eq 1 ] && exit 1
exit 0
