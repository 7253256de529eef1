kernel cpus=4 mem=0G seed=3
