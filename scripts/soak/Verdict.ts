/**
 * Judges whether a run's measurements are flat. Memory is measured after full collections, while no call is open, so it does not depend on the
 * load or on when V8 collects garbage. Its growth is the median slope between all pairs of samples (Theil-Sen), so outliers have little effect.
 */

export interface Sample {
  /** The number of restarts before the sample. */
  readonly life: number
  /** Minutes since the process started. */
  readonly age: number
  /** Heap and buffer memory of all threads after full collections, in MB; `undefined` if not measured. */
  readonly retained: number | undefined
  /** Anonymous resident memory, in MB. */
  readonly resident: number
  /** Open handles beyond those that were open before the first call. */
  readonly handles: number
  /** The size of the write-ahead log, in MB. */
  readonly log: number
  /** The median latency, in milliseconds. */
  readonly p50: number
  /** The 99th percentile of the latency, in milliseconds. */
  readonly p99: number
  /** The median latency of direct calls to the vendor, each with two writes to the same disk. */
  readonly direct: number
}

export interface Finding {
  readonly what: string
  readonly flat: boolean
}

/** The warm-up, in minutes: one-minute caches have been refreshed and hot code has been compiled. */
export const warmUp = 2

/** The maximum growth of retained memory within a life, in MB per minute. */
const growth = 0.2

/** The minimum number of samples and of minutes for judging a slope. */
const slopeSamples = 6
const slopeMinutes = 8

/**
 * How much each measure may rise from the first third of the run to the last: by a factor plus a constant. Resident memory depends on the maximum
 * number of open calls and on V8. For latency, only the best sample of each third is compared, because other programs can only increase it.
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
    name: "ms of median latency",
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

/** Returns the median of the slopes between all pairs of points. */
export const slope = (points: ReadonlyArray<readonly [x: number, y: number]>): number =>
  median(points.flatMap(([x, y], i) => points.slice(i + 1).map(([x2, y2]) => (y2 - y) / (x2 - x))))

const figure = (value: number): string => value.toFixed(Math.abs(value) < 10 ? 2 : 0)

/** Checks the upper limits, which apply to runs of any length. */
const ceilings = (samples: ReadonlyArray<Sample>, callers: number): ReadonlyArray<Finding> => {
  const limits = {
    retained: 100 + callers / 20,
    resident: 500 + callers / 4,
    // SQLite's log is checkpointed at 16 MB.
    log: 64,
    // Each caller uses one connection to the service and one to the vendor.
    handles: 2 * callers + 100
  }
  return (["retained", "resident", "log", "handles"] as const).map((name) => {
    const seen = Math.max(...samples.map((sample) => sample[name] ?? 0))
    return { what: `${name}: ${figure(seen)} at the peak; the limit is ${limits[name]}`, flat: seen <= limits[name] }
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
      what: `retained in life ${life + 1}, over ${minutes.toFixed(0)} minutes: ${figure(grows)} MB per minute; the limit is ${growth}`,
      flat: grows <= growth
    }
  })

/** Compares the run's last third with its first third. */
const thirds = (settled: ReadonlyArray<Sample>): ReadonlyArray<Finding> =>
  measures.flatMap(({ beside, factor, name, of, typical }) => {
    const values = settled.map(of).filter((value) => value !== undefined)
    const third = Math.floor(values.length / 3)
    if (third < 2) return []
    const [first, last] = [typical(values.slice(0, third)), typical(values.slice(-third))]
    const bound = first * factor + beside
    return {
      what: `${name}: ${figure(first)} in the first third, ${figure(last)} in the last; the limit is ${figure(bound)}`,
      flat: last <= bound
    }
  })

/** Judges every measure. Samples from the warm-up count only toward the upper limits. */
export const findings = (samples: ReadonlyArray<Sample>, callers: number): ReadonlyArray<Finding> => {
  const settled = samples.filter(({ age }) => age >= warmUp)
  return [...ceilings(samples, callers), ...slopes(settled), ...thirds(settled)]
}
