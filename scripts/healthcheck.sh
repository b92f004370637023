#!/bin/sh
# HealthCheckProgram=/etc/slurm/gpuhooks/healthcheck.sh in slurm.conf. A site copies this file and edits
# the next two lines if it installed elsewhere.
sbin=/usr/local/sbin
config=/etc/gpuhooks/gpuhooks.toml

# Slurm only logs the status: the program drains by itself. The wrapper keeps the
# manners of the other two, so that a boot gate may use it as well.
# To switch the hook off in a hurry: touch `off` beside the configuration file.

PATH=/usr/sbin:/usr/bin:/sbin:/bin # Slurm sets none
export PATH

"$sbin/gpu-healthcheck" --config "$config"
[ $? -eq 1 ] && exit 1
exit 0
