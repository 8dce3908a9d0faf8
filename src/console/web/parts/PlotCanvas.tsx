/** Draws a plot on a canvas with uPlot. */
import { useEffect, useRef } from "react"
import uPlot from "uplot"
import type { PlotSeries } from "./Plot.tsx"

interface PlotCanvasProps {
  readonly times: ReadonlyArray<number>
  readonly series: ReadonlyArray<PlotSeries>
  readonly colors: ReadonlyArray<string>
  readonly height: number
  readonly format: (value: number) => string
  readonly formatTick: (seconds: number) => string
  /** Whether the values are counts. The axis then shows no fractions. */
  readonly isWhole: boolean
  readonly at: number | undefined
  readonly onAt: (index: number | undefined) => void
  readonly onPress?: (index: number) => void
}

/** Resolves a CSS color, because a canvas cannot resolve custom properties. */
const resolved = (element: HTMLElement, color: string): string => {
  const probe = document.createElement("span")
  probe.style.color = color
  element.append(probe)
  const { color: value } = getComputedStyle(probe)
  probe.remove()
  return value
}

/** Stacks each series on the previous series. The first series is the lowest and is drawn last, on top of the others. */
const stacked = (times: ReadonlyArray<number>, series: ReadonlyArray<PlotSeries>): uPlot.AlignedData => {
  const sums = new Float64Array(times.length)
  const layers = series.map(({ values }) => {
    for (let i = 0; i < sums.length; i++) sums[i]! += values[i] ?? 0
    return Float64Array.from(sums)
  })
  return [Float64Array.from(times), ...layers.toReversed()]
}

/** The steps of an axis for counts: 1, 2, 5, 10, ... */
const wholeSteps = Array.from({ length: 13 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat()

/** The maximum number of buckets drawn as bars. With more buckets, `columns` draws the plot. */
const barsMax = 800

/** Draws one column per pixel with the maximum of its buckets, so no peak is lost or blurred. */
const columns =
  (width: number): uPlot.Series.PathBuilder =>
  (plot, index, first, last) => {
    const fill = new Path2D()
    const [times, values] = [plot.data[0], plot.data[index]!]
    const xOf = (seconds: number): number => Math.floor(plot.valToPos(seconds, "x", true))
    const bottom = plot.valToPos(0, "y", true)
    for (let i = first, left = xOf(times[first]! - width / 2); i <= last;) {
      let top = 0
      let right = left
      for (; i <= last && right === left; i++) {
        top = Math.max(top, values[i] ?? 0)
        right = xOf(times[i]! + width / 2)
      }
      const y = plot.valToPos(top, "y", true)
      if (top > 0) fill.rect(left, y, Math.max(1, right - left), bottom - y)
      left = right
    }
    return { fill, stroke: null, flags: 0 }
  }

/** Returns the uPlot options. Handlers and formatters are read on each use, so changing them does not recreate the plot. */
const optionsOf = (
  element: HTMLElement,
  { colors, height, isWhole, times }: Pick<PlotCanvasProps, "times" | "colors" | "height" | "isWhole">,
  handlers: { readonly current: Pick<PlotCanvasProps, "onAt" | "format" | "formatTick"> }
): uPlot.Options => {
  const color = (name: string): string => resolved(element, name)
  const ink = color("var(--ink-3)")
  const line = color("var(--line)")
  const font = `11px ${getComputedStyle(element).fontFamily}`
  const isBars = times.length <= barsMax
  const width = times.length < 2 ? 3600 : times[1]! - times[0]!
  const axis: uPlot.Axis = { stroke: ink, font, grid: { stroke: line, width: 1 }, ticks: { show: false } }
  return {
    width: element.clientWidth || 600,
    height,
    padding: [8, 20, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    scales: {
      // Each bucket is centered above its label. The pointer selects the nearest bucket.
      x: { time: true, range: () => [(times[0] ?? 0) - width / 2, (times.at(-1) ?? 0) + width / 2] },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] }
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 28,
        gap: 6,
        space: 84,
        values: (_, splits) => splits.map((seconds) => handlers.current.formatTick(seconds))
      },
      {
        ...axis,
        size: (_, values) => 14 + 7 * Math.max(3, ...(values ?? []).map((text) => text.length)),
        gap: 6,
        space: 44,
        ...(isWhole && { incrs: wholeSteps }),
        values: (_, splits) => splits.map((value) => handlers.current.format(value))
      }
    ],
    series: [
      {},
      ...colors.toReversed().map((css): uPlot.Series => {
        const paths = isBars ? uPlot.paths.bars!({ size: [0.82, 48], gap: 0 }) : columns(width)
        return { fill: color(css), width: 0, points: { show: false }, paths }
      })
    ],
    hooks: {
      setCursor: [
        ({ cursor: { idx, left } }) =>
          handlers.current.onAt(left === undefined || left < 0 ? undefined : (idx ?? undefined))
      ]
    }
  }
}

export const PlotCanvas = ({
  at,
  colors,
  format,
  formatTick,
  height,
  isWhole,
  onAt,
  onPress,
  series,
  times
}: PlotCanvasProps) => {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const handlers = useRef({ onAt, onPress, format, formatTick })
  handlers.current = { onAt, onPress, format, formatTick }

  useEffect(() => {
    const element = box.current!
    const made = new uPlot(
      optionsOf(element, { times, colors, height, isWhole }, handlers),
      stacked(times, series),
      element
    )
    made.over.addEventListener("click", () => {
      const { idx } = made.cursor
      if (idx !== null && idx !== undefined) handlers.current.onPress?.(idx)
    })
    plot.current = made
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
      plot.current = undefined
    }
  }, [times, series, colors, height, isWhole])

  // Move the cursor when the arrow keys change the bucket.
  useEffect(() => {
    const made = plot.current
    if (made === undefined || made.cursor.idx === at) return
    made.setCursor({ left: at === undefined ? -10 : made.valToPos(times[at]!, "x"), top: 10 }, false)
  }, [at, times])

  return <div ref={box} className="plot-canvas" />
}

export default PlotCanvas
