/**
 * A table with a sticky header. The arrow keys move between rows, and Enter opens the focused row. On a phone, each row becomes a card with the
 * column names next to the cells.
 */
import { ArrowDown, ArrowUp, ChevronLeft, ChevronRight } from "lucide-react"
import type { KeyboardEvent, ReactNode } from "react"
import { count } from "../moments.ts"
import { texts } from "../texts.ts"
import { Button } from "./Button.tsx"

export interface Column<Row, Sort extends string = string> {
  readonly id: string
  readonly title: string
  readonly cell: (row: Row) => ReactNode
  /** Use `end` for figures. */
  readonly align?: "start" | "end"
  /** The `sort` value that sorts by this column. */
  readonly sort?: Sort
  /** The table width required to show the column: 1100 px for `wide`, 760 px for `medium`. Cards show all columns. */
  readonly needs?: "medium" | "wide"
  /**
   * The cell's position on a card: the title, or the figure next to it. Other cells are below, with the column's name unless `plain`. `none` hides
   * the cell.
   */
  readonly card?: "title" | "figure" | "plain" | "none"
  /** Whether the column contains buttons, so that only screen readers get its title. */
  readonly isActions?: boolean
}

export interface Sorting<Sort extends string> {
  readonly by: Sort
  readonly direction: "asc" | "desc"
}

interface TableProps<Row, Sort extends string> {
  /** Describes the table to screen readers. */
  readonly caption: string
  readonly columns: ReadonlyArray<Column<Row, Sort>>
  readonly rows: ReadonlyArray<Row>
  readonly rowKey: (row: Row) => string
  readonly onOpen?: (row: Row) => void
  /** Returns whether the row is the sum of the other rows. */
  readonly isTotal?: (row: Row) => boolean
  readonly sorting?: Sorting<Sort>
  readonly onSort?: (sorting: Sorting<Sort>) => void
  /** Whether the next page is loading. */
  readonly isStale?: boolean
}

const moved = (event: KeyboardEvent<HTMLTableRowElement>): HTMLElement | null => {
  const { currentTarget: row, key } = event
  const near = key === "ArrowDown" ? row.nextElementSibling : key === "ArrowUp" ? row.previousElementSibling : null
  const far =
    key === "Home" ? row.parentElement!.firstElementChild : key === "End" ? row.parentElement!.lastElementChild : null
  return (near ?? far) as HTMLElement | null
}

interface HeadingProps<Row, Sort extends string> {
  readonly of: Column<Row, Sort>
  readonly sorting: Sorting<Sort> | undefined
  readonly onSort: ((sorting: Sorting<Sort>) => void) | undefined
}

/** Renders a column header, with a button if the column can be sorted. */
const Heading = <Row, Sort extends string>({ of, onSort, sorting }: HeadingProps<Row, Sort>) => {
  const { align, isActions, needs, sort, title } = of
  const isSorted = sort !== undefined && sorting?.by === sort
  const direction = isSorted ? sorting.direction : undefined
  return (
    <th
      scope="col"
      role="columnheader"
      className={`table-cell${align === "end" ? " table-end" : ""}${needs === undefined ? "" : ` table-${needs}`}`}
      {...(isSorted && { "aria-sort": direction === "asc" ? "ascending" : ("descending" as const) })}
    >
      {isActions === true ? (
        <span className="sr-only">{title}</span>
      ) : sort === undefined || onSort === undefined ? (
        title
      ) : (
        <button
          type="button"
          className="table-sort"
          onClick={() => onSort({ by: sort, direction: direction === "desc" ? "asc" : "desc" })}
        >
          {title}
          {direction === "asc" ? <ArrowUp size={12} aria-hidden /> : null}
          {direction === "desc" ? <ArrowDown size={12} aria-hidden /> : null}
        </button>
      )}
    </th>
  )
}

export const Table = <Row, Sort extends string = string>({
  caption,
  columns,
  isStale = false,
  isTotal,
  onOpen,
  onSort,
  rowKey,
  rows,
  sorting
}: TableProps<Row, Sort>) => {
  const onKeyDown = (event: KeyboardEvent<HTMLTableRowElement>, row: Row): void => {
    if (event.target !== event.currentTarget) return
    if (event.key === "Enter" && onOpen !== undefined) {
      event.preventDefault()
      return onOpen(row)
    }
    const next = moved(event)
    if (next === null) return
    event.preventDefault()
    next.focus()
  }
  return (
    <div className="table-box" data-stale={isStale || undefined}>
      <table className={onOpen === undefined ? "table" : "table table-open"} role="table">
        <caption className="sr-only">
          {caption}. {onOpen === undefined ? "" : texts.table.hint}
        </caption>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((column) => (
              <Heading key={column.id} of={column} sorting={sorting} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row, index) => (
            <tr
              key={rowKey(row)}
              role="row"
              tabIndex={index === 0 ? 0 : -1}
              className={isTotal?.(row) === true ? "table-row table-total" : "table-row"}
              onKeyDown={(event) => onKeyDown(event, row)}
              {...(onOpen !== undefined && {
                onClick: ({ target }) => {
                  if (!(target as Element).closest("a, button, input, select")) onOpen(row)
                }
              })}
            >
              {columns.map((column) => (
                <td
                  key={column.id}
                  role="cell"
                  className={cellClass(column)}
                  data-title={column.isActions === true || column.card !== undefined ? undefined : column.title}
                >
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

const cellClass = <Row, Sort extends string>({ align, card, isActions, needs }: Column<Row, Sort>): string =>
  [
    "table-cell",
    ...(align === "end" ? ["table-end"] : []),
    ...(needs === undefined ? [] : [`table-${needs}`]),
    ...(card === undefined ? [] : [`table-${card}`]),
    ...(isActions === true ? ["table-actions"] : [])
  ].join(" ")

interface PagesProps {
  readonly onPrevious: (() => void) | undefined
  readonly onNext: (() => void) | undefined
  /** The position, such as "1 to 50 of 1,234". */
  readonly children?: ReactNode
}

export const Pages = ({ children, onNext, onPrevious }: PagesProps) => (
  <nav className="table-pages" aria-label={texts.table.next}>
    <span className="quiet small">{children}</span>
    <div className="row push">
      <Button
        icon={ChevronLeft}
        aria-label={texts.table.previous}
        isDisabled={onPrevious === undefined}
        onPress={() => onPrevious?.()}
      />
      <Button
        icon={ChevronRight}
        aria-label={texts.table.next}
        isDisabled={onNext === undefined}
        onPress={() => onNext?.()}
      />
    </div>
  </nav>
)

interface NumberedPagesProps {
  readonly page: number
  readonly perPage: number
  /** The number of rows on this page. */
  readonly shown: number
  readonly total: number
  readonly go: (page: number) => void
}

/** Shows the position, and buttons for the adjacent pages. Renders nothing if all rows fit on one page. */
export const NumberedPages = ({ go, page, perPage, shown, total }: NumberedPagesProps) => {
  const before = (page - 1) * perPage
  return total <= perPage ? null : (
    <Pages
      onPrevious={page > 1 ? () => go(page - 1) : undefined}
      onNext={before + perPage < total ? () => go(page + 1) : undefined}
    >
      {texts.table.position(count(before + 1), count(before + shown), count(total))}
    </Pages>
  )
}
