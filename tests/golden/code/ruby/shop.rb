# frozen_string_literal: true

require "json"
require_relative "lib/price"

# Everything that is for sale.
module Shop
  VERSION = "1.0"

  # A basket of things.
  #
  # It knows what they cost.
  class Basket < Shop::Container
    include Comparable

    LIMIT = 20

    attr_reader :items

    # An empty one.
    def self.empty = new([])

    def initialize(items, owner: nil, **rest)
      @items = items
    end

    def full?
      @items.size >= LIMIT
    end

    def <=>(other) = total <=> other.total

    def total; end

    class << self
      def parse(text)
        new(JSON.parse(text))
      end
    end

    protected

    def secret; end

    private

    def add!(item, *more, &block)
      define_method(:x) { item }
    end

    public

    def again; end

    private def hidden; end
  end

  module_function

  def größe(länge)
    länge
  end
end

class Shop::Empty; end

def main
  Shop::Basket.empty
end
