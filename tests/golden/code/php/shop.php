<?php

declare(strict_types=1);

namespace Shop\Goods;

use Shop\Price;
use function strlen as length;

const VERSION = '1.0';

/**
 * What can be sold.
 */
interface Sellable
{
    public const CURRENCY = 'EUR';

    public function price(): Price;
}

trait Counted
{
    private int $count = 0;

    protected function count(): int
    {
        return $this->count;
    }
}

enum Size: string
{
    case Small = 's';
    case Large = 'l';

    public static function parse(string $text): self
    {
        return self::from($text);
    }
}

/**
 * Something with a name.
 *
 * It has a price too.
 */
abstract class Thing extends Base implements Sellable, \Countable
{
    use Counted;

    private const LIMIT = 3, LEAST = 1;

    public function __construct(private string $name, protected ?Price $price = null)
    {
    }

    // The price.
    final public function price(): Price
    {
        $tax = fn (int $x) => $x * 2;
        return new Price($tax(1));
    }

    abstract protected static function make(): static;

    function unsaid() {}
}

function größe(string $länge, int ...$rest): int
{
    return length($länge);
}
