/** The drawing of a plot, by uPlot on a canvas: a year of hours in some milliseconds. */
import { useEffect, useRef } from "react"
import uPlot from "uplot"
import type { PlotSeries } from "./Plot.tsx"

interface PlotCanvasProps {
  readonly times: ReadonlyArray<number>
  readonly series: ReadonlyArray<PlotSeries>
  /** As CSS. */
  readonly colors: ReadonlyArray<string>
  readonly height: number
  readonly format: (value: number) => string
  /** A moment on the axis, short. */
  readonly formatTick: (seconds: number) => string
  readonly at: number | undefined
  readonly onAt: (index: number | undefined) => void
  readonly onPress?: (index: number) => void
}

/** What CSS makes of a colour: a canvas knows no custom properties. */
const resolved = (element: HTMLElement, color: string): string => {
  const probe = document.createElement("span")
  probe.style.color = color
  element.append(probe)
  const { color: value } = getComputedStyle(probe)
  probe.remove()
  return value
}

/** Each series on top of those before it; the first is lowest, and is drawn last, over the others. */
const stacked = (times: ReadonlyArray<number>, series: ReadonlyArray<PlotSeries>): uPlot.AlignedData => {
  const sums = new Float64Array(times.length)
  const layers = series.map(({ values }) => {
    for (let i = 0; i < sums.length; i++) sums[i]! += values[i] ?? 0
    return Float64Array.from(sums)
  })
  return [Float64Array.from(times), ...layers.toReversed()]
}

const barsMax = 800

export const PlotCanvas = ({
  at,
  colors,
  format,
  formatTick,
  height,
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
    const color = (name: string): string => resolved(element, name)
    const ink = color("var(--ink-3)")
    const line = color("var(--line)")
    const font = `11px ${getComputedStyle(element).fontFamily}`
    const isBars = times.length <= barsMax
    const width = times.length < 2 ? 3600 : times[1]! - times[0]!
    const axis: uPlot.Axis = { stroke: ink, font, grid: { stroke: line, width: 1 }, ticks: { show: false } }
    const made = new uPlot(
      {
        width: element.clientWidth || 600,
        height,
        padding: [8, 28, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
        scales: {
          x: { time: true, range: () => [times[0] ?? 0, (times.at(-1) ?? 1) + width] },
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
            values: (_, splits) => splits.map((value) => handlers.current.format(value))
          }
        ],
        series: [
          {},
          ...colors.toReversed().map((css): uPlot.Series => {
            const fill = color(css)
            return isBars
              ? {
                  fill,
                  width: 0,
                  points: { show: false },
                  paths: uPlot.paths.bars!({ size: [0.82, 48], align: 1, gap: 0 })
                }
              : { fill, stroke: fill, width: 1, points: { show: false }, paths: uPlot.paths.stepped!({ align: 1 }) }
          })
        ],
        hooks: {
          setCursor: [
            ({ cursor: { idx, left } }) =>
              handlers.current.onAt(left === undefined || left < 0 ? undefined : (idx ?? undefined))
          ]
        }
      },
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
  }, [times, series, colors, height])

  // The arrow keys move the cursor too.
  useEffect(() => {
    const made = plot.current
    if (made === undefined || made.cursor.idx === at) return
    const left =
      at === undefined ? -10 : made.valToPos(times[at]! + (times.length < 2 ? 0 : (times[1]! - times[0]!) / 2), "x")
    made.setCursor({ left, top: 10 }, false)
  }, [at, times])

  return <div ref={box} className="plot-canvas" />
}

export default PlotCanvas
