/** The verdict of `npm run soak` over runs that are made up: one that is flat and noisy holds, each that grows is found. */
import { describe, expect, it } from "vitest"
import { findings, slope } from "../../scripts/soak/Verdict.ts"
import type { Sample } from "../../scripts/soak/Verdict.ts"

const callers = 1_000
const lives = [5, 5, 5, 30, 5, 5, 5]

/** An hour of a service that is flat on a machine that is not: every few minutes others take most of it. */
const hour = (change: (sample: Sample, minute: number) => Partial<Sample> = () => ({})): ReadonlyArray<Sample> => {
  let minute = 0
  return lives.flatMap((minutes, life) =>
    Array.from({ length: minutes }, (_, turn) => {
      minute++
      const isBusy = minute % 7 < 4
      const sample: Sample = {
        life,
        age: turn + 1,
        retained: turn % 2 === 1 || turn === minutes - 1 ? 58 + (minute % 3) : undefined,
        resident: isBusy ? 360 : 280,
        handles: isBusy ? 1_900 : 1_080,
        log: 16,
        p50: isBusy ? 4_000 : 20 + (minute % 5),
        p99: isBusy ? 15_000 : 200,
        direct: 20
      }
      return { ...sample, ...change(sample, minute) }
    })
  )
}

const grown = (samples: ReadonlyArray<Sample>): ReadonlyArray<string> =>
  findings(samples, callers).flatMap(({ flat, what }) => (flat ? [] : [what.split(":")[0]!]))

describe("the verdict of a soak", () => {
  it("holds of a run that is flat, whatever else the machine does", () => {
    expect(grown(hour())).toEqual([])
    expect(findings(hour(), callers)).toHaveLength(8)
  })

  it("finds memory that a life holds on to, a quarter of a megabyte a minute", () => {
    const leak = hour(({ age, retained }) => ({ retained: retained === undefined ? undefined : retained + age / 4 }))
    expect(grown(leak)).toEqual(["retained in life 4, over 28 minutes"])
  })

  it("finds what grows from life to life", () => {
    const grows = hour(({ retained }, minute) => ({
      retained: retained === undefined ? undefined : retained + minute / 2,
      p50: 20 + 3 * minute,
      resident: 250 + 6 * minute
    }))
    expect(grown(grows)).toEqual([
      "retained in life 4, over 28 minutes",
      "MB retained",
      "MB resident",
      "ms of median latency"
    ])
  })

  it("finds a log that is not folded back, handles beyond two a caller, and memory beyond all bounds, in a short run too", () => {
    const short = hour(() => ({ log: 65, handles: 2_101, retained: 151, resident: 751 })).slice(0, 2)
    expect(grown(short)).toEqual(["retained", "resident", "log", "handles"])
  })

  it("a slope is that of most of its points", () => {
    const line = Array.from({ length: 20 }, (_, x) => [x, x === 7 ? 1_000 : 2 * x] as const)
    expect(slope(line)).toBe(2)
  })
})
