/**
 * Stacked series over time. The drawing code (uPlot) is a separate file, loaded with the first plot. Clicking a series in the legend shows only that
 * series. A second click shows all series. The legend also shows the values at the pointer, and the arrow keys move through time. A table below
 * contains the newest values.
 */
import { lazy, memo, Suspense, useId, useMemo, useState } from "react"
import type { KeyboardEvent, ReactNode } from "react"
import { useIsDark } from "../app/Theme.ts"
import { texts } from "../texts.ts"
import { Loading } from "./States.tsx"

const PlotCanvas = lazy(() => import("./PlotCanvas.tsx"))

export interface PlotSeries {
  readonly key: string
  readonly name: string
  readonly values: ReadonlyArray<number>
  /** Whether this series is the sum of the series that are not shown separately. It is gray and comes last. */
  readonly isRest?: boolean
}

export interface PlotProps {
  /** Describes the plot to screen readers. */
  readonly title: string
  /** The start of each bucket, as Unix time in seconds, in ascending order. */
  readonly times: ReadonlyArray<number>
  readonly series: ReadonlyArray<PlotSeries>
  /** Formats a value as a short string, for the axis and the legend. */
  readonly format: (value: number) => string
  readonly formatTime: (seconds: number) => string
  /** Formats a short label for the axis. */
  readonly formatTick: (seconds: number) => string
  readonly height?: number
  /** Whether the values are counts. */
  readonly isWhole?: boolean
  /** Renders a series' exact total. The default is the sum of its floating-point values. */
  readonly total?: (key: string) => ReactNode
  readonly onBucket?: (seconds: number) => void
  /** The series shown alone, if the parent component controls the selection. */
  readonly chosen?: { readonly key: string | undefined; readonly choose: (key: string | undefined) => void }
}

const colorOf = (index: number, isRest: boolean | undefined): string =>
  isRest === true || index > 7 ? "var(--series-rest)" : `var(--series-${index + 1})`

const tableMax = 400

/** Tracks the bucket at the pointer. The arrow keys move the pointer, and Enter opens its bucket. */
const usePointed = (times: PlotProps["times"], onBucket: PlotProps["onBucket"]) => {
  const [pointed, setAt] = useState<number>()
  // A change of the time window may reduce the number of buckets.
  const at = pointed !== undefined && pointed < times.length ? pointed : undefined
  const open = (index: number): void => {
    setAt(undefined)
    onBucket?.(times[index]!)
  }
  const step = (by: number): void =>
    setAt((now) => Math.min(times.length - 1, Math.max(0, (now ?? times.length - (by > 0 ? 1 : 0)) + by)))
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      event.preventDefault()
      step(event.key === "ArrowLeft" ? -1 : 1)
    } else if (event.key === "Escape") setAt(undefined)
    else if (event.key === "Enter" && at !== undefined) open(at)
  }
  return { at, onKeyDown, open, setAt }
}

type FiguresProps = Pick<PlotProps, "format" | "formatTime" | "series" | "times">

/** Shows the values of the newest nonempty buckets as a table, newest first. */
const Figures = memo(({ format, formatTime, series, times }: FiguresProps) => (
  <div className="plot-table-box scrolls" tabIndex={0} role="region" aria-label={texts.plot.asTable}>
    <table>
      <thead>
        <tr>
          <th scope="col">{texts.plot.bucket}</th>
          {series.map(({ key, name }) => (
            <th key={key} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {times
          .map((time, index) => [time, index] as const)
          .filter(([, index]) => series.some(({ values }) => values[index] !== 0))
          .slice(-tableMax)
          .toReversed()
          .map(([time, index]) => (
            <tr key={time}>
              <th scope="row">{formatTime(time)}</th>
              {series.map(({ key, values }) => (
                <td key={key}>{format(values[index] ?? 0)}</td>
              ))}
            </tr>
          ))}
      </tbody>
    </table>
  </div>
))

interface LegendProps {
  readonly series: ReadonlyArray<PlotSeries>
  readonly colors: ReadonlyArray<string>
  readonly only: string | undefined
  readonly onPress: (series: PlotSeries) => void
  readonly children: (series: PlotSeries) => ReactNode
}

const Legend = ({ children, colors, only, onPress, series }: LegendProps) => (
  <ul className="plot-legend">
    {series.map((one, index) => (
      <li key={one.key}>
        <button
          type="button"
          className="plot-key"
          aria-pressed={only === one.key}
          data-out={(only !== undefined && only !== one.key) || undefined}
          title={texts.plot.show(one.name)}
          onClick={() => onPress(one)}
        >
          <span className="plot-swatch" style={{ background: colors[index] }} />
          <span className="ellipsis">{one.name}</span>
          <span className="plot-value">{children(one)}</span>
        </button>
      </li>
    ))}
  </ul>
)

/** Returns the series to draw: all of them, or only the selected one. `chosen` is the parent component's selection, if it controls it. */
const useShown = (series: ReadonlyArray<PlotSeries>, chosen: PlotProps["chosen"]) => {
  const [localKey, setLocalKey] = useState<string>()
  const only = chosen?.key ?? localKey
  const colors = useMemo(() => series.map(({ isRest }, index) => colorOf(index, isRest)), [series])
  const isOne = only !== undefined && series.some(({ key }) => key === only)
  const visibleSeries = useMemo(
    () => (isOne ? series.filter(({ key }) => key === only) : series),
    [series, only, isOne]
  )
  const visibleColors = useMemo(
    () => (isOne ? colors.filter((_, index) => series[index]!.key === only) : colors),
    [colors, series, only, isOne]
  )
  const press = ({ isRest, key }: PlotSeries): void => {
    const next = only === key ? undefined : key
    // The parent component cannot choose the combined series, because that series is the sum of several.
    setLocalKey(chosen === undefined || isRest === true ? next : undefined)
    chosen?.choose(isRest === true ? undefined : next)
  }
  return { colors, isOne, only, press, seen: visibleSeries, seenColors: visibleColors }
}

/** Renders a collapsed table. Its content is rendered only when it opens. */
const FiguresTable = (props: FiguresProps) => {
  const [isOpen, setOpen] = useState(false)
  return (
    <details className="plot-table" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{texts.plot.asTable}</summary>
      {isOpen ? <Figures {...props} /> : null}
    </details>
  )
}

interface PointedProps {
  readonly time: string | undefined
  readonly sum: string
}

/** Shows the bucket at the pointer and its sum. An empty line keeps the layout stable. */
const PointedBucket = ({ sum, time }: PointedProps) => (
  <p className="plot-now" aria-live="polite">
    {time === undefined ? (
      <span className="quiet">{"\u00a0"}</span>
    ) : (
      <>
        <span className="quiet">{time}</span> <strong>{sum}</strong>
      </>
    )}
  </p>
)

export const Plot = ({
  chosen,
  format,
  formatTick,
  formatTime,
  height = 240,
  isWhole = false,
  onBucket,
  series,
  times,
  title,
  total
}: PlotProps) => {
  const { colors, isOne, only, press, seen, seenColors } = useShown(series, chosen)
  const { at, onKeyDown, open, setAt } = usePointed(times, onBucket)
  const isDark = useIsDark()
  const id = useId()
  const sumAt = (index: number): number => seen.reduce((sum, { values }) => sum + (values[index] ?? 0), 0)
  return (
    <figure className="plot" aria-labelledby={id}>
      <figcaption id={id} className="sr-only">
        {title}. {texts.plot.hint}
      </figcaption>
      <div
        className="plot-drawing"
        style={{ height }}
        tabIndex={0}
        role="group"
        aria-labelledby={id}
        onKeyDown={onKeyDown}
        onBlur={() => setAt(undefined)}
      >
        <Suspense fallback={<Loading lines={5} />}>
          <PlotCanvas
            // Changing the theme redraws the plot in the new colors.
            key={isDark ? "dark" : "light"}
            times={times}
            series={seen}
            colors={seenColors}
            height={height}
            format={format}
            formatTick={formatTick}
            isWhole={isWhole}
            at={at}
            onAt={setAt}
            {...(onBucket !== undefined && { onPress: open })}
          />
        </Suspense>
      </div>
      <PointedBucket
        time={at === undefined ? undefined : formatTime(times[at]!)}
        sum={at === undefined ? "" : format(sumAt(at))}
      />
      <Legend series={series} colors={colors} only={isOne ? only : undefined} onPress={press}>
        {({ key, values }) => (at === undefined ? total?.(key) : format(values[at] ?? 0))}
      </Legend>
      <FiguresTable times={times} series={series} format={format} formatTime={formatTime} />
    </figure>
  )
}
