/**
 * Runs fibers in the order in which they have something to do, in a microtask, as Effect's own scheduler does. It knows no priorities and
 * asks no fiber for settings: that is asked before every step, and took a fifth of the time of a fiber's steps.
 */
import type { Scheduler } from "effect"

/** Steps of a fiber after which others have a turn: Effect's own default. */
const stepsMax = 2_048
/** Rounds after which the event loop has a turn, where fibers keep each other busy. */
const roundsMax = 2_048

const settled = Promise.resolve()

class PoolScheduler implements Scheduler.Scheduler {
  private tasks: Array<Scheduler.Task> = []
  private rounds = 0

  shouldYield(fiber: { readonly currentOpCount: number }): number | false {
    return fiber.currentOpCount > stepsMax ? 0 : false
  }

  scheduleTask(task: Scheduler.Task): void {
    if (this.tasks.push(task) > 1) return
    if (this.rounds < roundsMax) void settled.then(this.round)
    else setImmediate(this.round)
  }

  private readonly round = (): void => {
    const { tasks } = this
    this.tasks = []
    this.rounds = this.rounds < roundsMax ? this.rounds + 1 : 0
    for (const task of tasks) task()
    if (this.tasks.length === 0) this.rounds = 0
  }
}

/** One for all, so that they run in the order in which they were woken. */
export const poolScheduler: Scheduler.Scheduler = new PoolScheduler()
