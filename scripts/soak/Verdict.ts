/**
 * Judges whether a run's measurements are flat. Memory is measured after full collections while no call is open, so it does not depend on V8's own
 * behavior or on the load. Its growth is the median of the slopes between any two samples (Theil and Sen), so outliers have no effect.
 */

export interface Sample {
  /** The process's life, from 0. */
  readonly life: number
  /** Minutes since the life began. */
  readonly age: number
  /** MB of objects and their buffers after full collections, over all threads. `undefined` if not measured. */
  readonly retained: number | undefined
  /** Anonymous resident memory in MB. */
  readonly resident: number
  /** Handles beyond the number before the first call. */
  readonly handles: number
  /** MB of the write-ahead log. */
  readonly log: number
  /** The median latency in milliseconds, and the 99th percentile. */
  readonly p50: number
  readonly p99: number
  /** The median latency of direct calls to the vendor, with two writes to the same disk. */
  readonly direct: number
}

export interface Finding {
  readonly what: string
  readonly flat: boolean
}

/** Minutes until minute-long caches are renewed and frequent code is compiled. */
export const warmUp = 2

/** The allowed growth of retained memory in a life, in MB per minute. */
const growth = 0.2

/** The minimum number of samples, and of minutes, to judge a slope. */
const slopeSamples = 6
const slopeMinutes = 8

/**
 * The factor and the constant that bound each measure in the last third of the run, from its value in the first third. Resident memory depends on the
 * highest number of open calls and on V8. For latency, the best minutes are compared, because other programs on the machine only add to it.
 */
const measures: ReadonlyArray<{
  readonly name: string
  readonly of: (sample: Sample) => number | undefined
  readonly typical: (all: ReadonlyArray<number>) => number
  readonly factor: number
  readonly beside: number
}> = [
  { name: "MB retained", of: ({ retained }) => retained, typical: (all) => median(all), factor: 1.1, beside: 5 },
  { name: "MB resident", of: ({ resident }) => resident, typical: (all) => median(all), factor: 1.5, beside: 50 },
  {
    name: "ms that half of the calls took",
    of: ({ p50 }) => p50,
    typical: (all) => Math.min(...all),
    factor: 3,
    beside: 20
  }
]

export const median = (all: ReadonlyArray<number>): number => {
  const sorted = all.toSorted((one, other) => one - other)
  const half = sorted.length / 2
  return (sorted[Math.ceil(half) - 1]! + sorted[Math.floor(half)]!) / 2
}

/** The median of the slopes between any two points. */
export const slope = (points: ReadonlyArray<readonly [x: number, y: number]>): number =>
  median(points.flatMap(([x, y], i) => points.slice(i + 1).map(([x2, y2]) => (y2 - y) / (x2 - x))))

const figure = (value: number): string => value.toFixed(Math.abs(value) < 10 ? 2 : 0)

/** Upper bounds for every run, however short, with this many callers. */
const ceilings = (samples: ReadonlyArray<Sample>, callers: number): ReadonlyArray<Finding> => {
  const most = {
    retained: 100 + callers / 20,
    resident: 500 + callers / 4,
    // The log is checkpointed at 16 MB.
    log: 64,
    // One connection per caller, and one to the vendor.
    handles: 2 * callers + 100
  }
  return (["retained", "resident", "log", "handles"] as const).map((name) => {
    const seen = Math.max(...samples.map((sample) => sample[name] ?? 0))
    return { what: `${name}: ${figure(seen)} at most, ${most[name]} are allowed`, flat: seen <= most[name] }
  })
}

/** Judges the growth of retained memory in each life that is long enough. */
const slopes = (settled: ReadonlyArray<Sample>): ReadonlyArray<Finding> =>
  [...new Set(settled.map(({ life }) => life))].flatMap((life) => {
    const points = settled.flatMap((one) =>
      one.life === life && one.retained !== undefined ? [[one.age, one.retained] as const] : []
    )
    const minutes = (points.at(-1)?.[0] ?? 0) - (points[0]?.[0] ?? 0)
    if (points.length < slopeSamples || minutes < slopeMinutes) return []
    const grows = slope(points)
    return {
      what: `retained in life ${life + 1}, over ${minutes.toFixed(0)} minutes: ${figure(grows)} MB a minute, ${growth} are allowed`,
      flat: grows <= growth
    }
  })

/** Compares the last third of the run with the first. */
const thirds = (settled: ReadonlyArray<Sample>): ReadonlyArray<Finding> =>
  measures.flatMap(({ beside, factor, name, of, typical }) => {
    const values = settled.map(of).filter((value) => value !== undefined)
    const third = Math.floor(values.length / 3)
    if (third < 2) return []
    const [first, last] = [typical(values.slice(0, third)), typical(values.slice(-third))]
    const bound = first * factor + beside
    return {
      what: `${name}: ${figure(first)} in the first third, ${figure(last)} in the last, ${figure(bound)} are allowed`,
      flat: last <= bound
    }
  })

/** Judges each measure. The warm-up is excluded, except for the upper bounds. */
export const findings = (samples: ReadonlyArray<Sample>, callers: number): ReadonlyArray<Finding> => {
  const settled = samples.filter(({ age }) => age >= warmUp)
  return [...ceilings(samples, callers), ...slopes(settled), ...thirds(settled)]
}
