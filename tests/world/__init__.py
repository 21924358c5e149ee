"""Harnesses that run whole pipelines for long, in random orders or with faults.

growth/             ten thousand batches: what grows with history
minutes/            a run every minute: what an hour of it costs
mixed_operations/   all operations of the command line in random orders
planted/            faults planted in the engine, noticed by the checks of a batch
random_pipelines/   random definitions and batches, against plain Python
schedules/          runs, operators and other programs, step by step in any order
soak/               real processes, killed and stopped at random
stopped/            pipelines stopped at every step, then continued
"""
