/**
 * Whether what was measured of a run is flat. Memory is what full collections leave while no call is open, so it says what is held on to,
 * whatever V8 does by itself and however many wait. Its growth is the median of the slopes between any two samples (Theil and Sen): one that
 * is off changes nothing.
 */

export interface Sample {
  /** Which life of the process it is of, from 0. */
  readonly life: number
  /** Minutes since that life began. */
  readonly age: number
  /** MB that full collections leave, of all threads: objects, and buffers beside them. `undefined` where none was asked for. */
  readonly retained: number | undefined
  /** MB that are resident and of no file. */
  readonly resident: number
  /** Those beyond what the process had before the first call. */
  readonly handles: number
  /** MB of the write-ahead log. */
  readonly log: number
  /** Milliseconds that half of the calls took at the most; and 99 of a hundred. */
  readonly p50: number
  readonly p99: number
  /** Milliseconds that half of the calls to the vendor itself took, with two writes to the same disk. */
  readonly direct: number
}

export interface Finding {
  readonly what: string
  readonly flat: boolean
}

/** Minutes until caches that last a minute have been renewed, and what runs often is compiled. */
export const warmUp = 2

/** MB a minute by which what is retained may grow in a life. */
const growth = 0.2

/** From how many samples on, over how many minutes, a slope is judged. */
const slopeSamples = 6
const slopeMinutes = 8

/**
 * How much each may be in the last third of the run, by what it was in the first: a factor, and something beside. What is resident follows
 * how many calls were ever open at once, and what V8 takes for itself. Of latency the best minutes are compared: other programs at work on the
 * machine only add to it.
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

/** What must be so of every run, however short, with so many callers. */
const ceilings = (samples: ReadonlyArray<Sample>, callers: number): ReadonlyArray<Finding> => {
  const most = {
    retained: 100 + callers / 20,
    resident: 500 + callers / 4,
    // Folded back at 16.
    log: 64,
    // Of each caller the connection, and one to the vendor.
    handles: 2 * callers + 100
  }
  return (["retained", "resident", "log", "handles"] as const).map((name) => {
    const seen = Math.max(...samples.map((sample) => sample[name] ?? 0))
    return { what: `${name}: ${figure(seen)} at most, ${most[name]} are allowed`, flat: seen <= most[name] }
  })
}

/** The growth of what is retained in each life that is long enough. */
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

/** The first third of the run against its last. */
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

/** Says of each measure whether it is flat. What a start takes is left out, but of what no sample may exceed. */
export const findings = (samples: ReadonlyArray<Sample>, callers: number): ReadonlyArray<Finding> => {
  const settled = samples.filter(({ age }) => age >= warmUp)
  return [...ceilings(samples, callers), ...slopes(settled), ...thirds(settled)]
}
